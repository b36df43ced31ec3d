"""
Logging as JSON lines without secrets, with the request id, and with expected errors as warnings.

With SENTRY_DSN, errors are also reported to Sentry, without secrets and personal data. Bodies, cookies, local variables
and earlier log lines never leave the process; this module filters the rest.
"""

import logging
import re
import sys
import threading
from http import HTTPStatus
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from signer import logs

# Frameworks log paths unchanged, but the path of a postback ends in a secret, and its query is signed.
_POSTBACK = re.compile(r'(/api/postbacks/[^/\s"\\]+/)[^\s"\\]+')


def without_path_tokens(logger: Any, name: str, line: Any) -> str:
    """Cut the path of a postback after the network; a structlog processor for rendered lines."""
    return _POSTBACK.sub(r"\1…", line)


def logging_settings(level: str) -> dict[str, Any]:
    """Return Django's setting LOGGING: JSON lines on standard error from `level` on, which block no caller."""
    quieter = {"DEBUG": "INFO", "INFO": "WARNING"}.get(level, level)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": json_formatter}},
        "filters": {
            "expected_errors_are_warnings": {
                "()": "django.utils.log.CallbackFilter",
                "callback": expected_errors_are_warnings,
            }
        },
        "handlers": {"console": {"()": logs.BackgroundHandler, "formatter": "json"}},
        "root": {"handlers": ["console"], "level": level},
        # These loggers write access keys and client secrets at DEBUG, and two lines for each request at INFO.
        "loggers": {
            **{name: {"level": quieter} for name in ("urllib3", "stripe")},
            **{
                name: {"filters": ["expected_errors_are_warnings"]}
                for name in (
                    "django.request",
                    "gateway.requests",
                    "django.security.DisallowedHost",
                    "django.security.TooManyFieldsSent",
                )
            },
        },
    }


def configure_structlog() -> None:
    """Pass the lines of structlog's loggers to the standard library's handlers."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.filter_by_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def json_formatter() -> structlog.stdlib.ProcessorFormatter:
    """Return the formatter for structlog's and all other loggers."""
    return logs.json_formatter(without_path_tokens)


def log_uncaught() -> None:
    """Log warnings and uncaught errors, including those in threads and finalizers, which Python would only print."""
    logging.captureWarnings(True)
    log = logging.getLogger("gateway.uncaught")
    sys.excepthook = lambda *error: log.critical("the process ends with an uncaught error", exc_info=error)
    sys.unraisablehook = lambda unraisable: log.error(
        unraisable.err_msg or "an error in a finalizer was ignored", exc_info=unraisable.exc_value
    )
    threading.excepthook = lambda ended: log.error(
        "a thread ends with an uncaught error", exc_info=ended.exc_value
    )


def expected_errors_are_warnings(record: logging.LogRecord) -> bool:
    """
    A logging filter that makes expected errors warnings, which Django's loggers would log as errors.

    A 503 is deliberate, and any caller can send a wrong host name. Real faults are logged where they occur, at ERROR
    with a traceback.
    """
    message: object = record.msg
    event = message if isinstance(message, dict) else {}
    is_unavailable = HTTPStatus.SERVICE_UNAVAILABLE in (
        getattr(record, "status_code", None),
        event.get("code"),
    )
    if not is_unavailable and not record.name.startswith("django.security."):
        return True
    record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    record.exc_info = record.exc_text = None
    if "level" in event:
        event["level"] = "warning"
    return logging.getLogger(record.name).isEnabledFor(logging.WARNING)


def request_id() -> str | None:
    """Return the id of the current request, as in the logs; None outside a request."""
    value = structlog.contextvars.get_contextvars().get("request_id")
    return str(value) if value else None


_REMOVED = "[removed]"
_SECRET_NAMES = re.compile(
    r"authorization|cookie|signature|token|secret|passw|mnemonic|api.?key|private|e-?mail|body|query_string|"
    r"forwarded|remote_addr|ip_address|client_ip",
    re.IGNORECASE,
)
# Patterns that are replaced in every text.
_SECRET_TEXTS = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        # Paths and queries of URLs may contain access keys, tokens and passwords.
        (r"\b([a-z][a-z+]*://)(?:[^/\s'\"@]*@)?([^/\s'\"?@]+)[^\s'\"]*", r"\1\2/…"),
        (r"(/api/postbacks/[^/\s]+/)\S+", r"\1…"),
        (r"\b(bearer|basic)\s+\S+", rf"\1 {_REMOVED}"),
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]*", _REMOVED),
        (r"\b(?:sk|rk|pk|whsec)_\w+", _REMOVED),
        (r"[\w.+-]+@[\w-]+\.[\w.-]+", _REMOVED),
        # Signatures, payloads and signed transactions; hashes stay.
        (r"(?:0x)?[0-9a-f]{128,}", _REMOVED),
        (r"\b(0x[0-9a-f]{4})[0-9a-f]{32}([0-9a-f]{4})\b", r"\1…\2"),
    )
)


def sentry_options() -> dict[str, Any]:
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


def start_sentry() -> None:
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
    sentry_sdk.init(**sentry_options())


def without_secrets(event: Any, hint: Any) -> Any:
    """Return the event without secrets; Sentry's library calls this before it sends an event."""
    return _without_secrets(event)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _REMOVED
            if _SECRET_NAMES.search(str(name)) and value[name]
            else _without_secrets(value[name])
            for name in value
        }
    if isinstance(value, list | tuple):
        return [_without_secrets(item) for item in value]
    if isinstance(value, bytes):
        return _REMOVED
    if isinstance(value, str):
        for pattern, replacement in _SECRET_TEXTS:
            value = pattern.sub(replacement, value)
    return value
