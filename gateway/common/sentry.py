"""
Errors reported to Sentry, where SENTRY_DSN is set: without what could be used or names a person.

Neither bodies, cookies, local variables nor log lines before the error leave the process; what is left is cut here.
"""

import re
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

REMOVED = "[removed]"
_NAMES = re.compile(
    r"authorization|cookie|signature|token|secret|passw|mnemonic|api.?key|private|e-?mail|body|query_string|"
    r"forwarded|remote_addr|ip_address|client_ip",
    re.IGNORECASE,
)
# What is replaced wherever it stands in a text.
_TEXTS = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        # Paths and queries hold access keys, tokens and passwords.
        (r"\b([a-z][a-z+]*://)(?:[^/\s'\"@]*@)?([^/\s'\"?@]+)[^\s'\"]*", r"\1\2/…"),
        (r"(/api/postbacks/[^/\s]+/)\S+", r"\1…"),
        (r"\b(bearer|basic)\s+\S+", rf"\1 {REMOVED}"),
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]*", REMOVED),
        (r"\b(?:sk|rk|pk|whsec)_\w+", REMOVED),
        (r"[\w.+-]+@[\w-]+\.[\w.-]+", REMOVED),
        # Signatures, payloads and signed transactions; hashes stay.
        (r"(?:0x)?[0-9a-f]{128,}", REMOVED),
        (r"\b(0x[0-9a-f]{4})[0-9a-f]{32}([0-9a-f]{4})\b", r"\1…\2"),
    )
)


def options() -> dict[str, Any]:
    """Return how Sentry's library is set up."""
    from sentry_sdk.integrations.celery import CeleryIntegration
    from sentry_sdk.integrations.django import DjangoIntegration

    return {
        "dsn": settings.SENTRY_DSN,
        "environment": settings.STAFF_ENVIRONMENT or f"chain-{settings.CHAIN_ID}",
        "integrations": [DjangoIntegration(), CeleryIntegration()],
        "auto_enabling_integrations": False,
        "send_default_pii": False,
        "include_local_variables": False,
        "max_request_body_size": "never",
        "max_breadcrumbs": 0,
        "before_send": without_secrets,
    }


def start() -> None:
    """
    Report errors from now on, where the settings say so.

    Raises:
        ImproperlyConfigured: the packages of requirements/watching.txt are not installed.
    """
    if not settings.SENTRY_DSN:
        return
    try:
        import sentry_sdk
    except ImportError as error:
        raise ImproperlyConfigured("SENTRY_DSN needs the packages of requirements/watching.txt.") from error
    sentry_sdk.init(**options())


def without_secrets(event: Any, hint: Any) -> Any:
    """Return the event without them; Sentry's library calls this before it sends anything."""
    return _cleaned(event)


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: REMOVED if _NAMES.search(str(name)) and value[name] else _cleaned(value[name])
            for name in value
        }
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    if isinstance(value, bytes):
        return REMOVED
    if isinstance(value, str):
        for pattern, replacement in _TEXTS:
            value = pattern.sub(replacement, value)
    return value
