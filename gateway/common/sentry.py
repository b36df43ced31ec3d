"""
Error reports to Sentry, if SENTRY_DSN is set, without secrets and personal data.

Bodies, cookies, local variables and earlier log lines never leave the process; the rest is filtered here.
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
# Patterns that are replaced in every text.
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
    """Return the options of Sentry's library."""
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
    Start error reporting, if SENTRY_DSN is set.

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
    """Return the event without secrets; Sentry's library calls this before it sends an event."""
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
