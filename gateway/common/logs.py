"""What no log line may hold, and how loud a refusal is."""

import logging
import re
from http import HTTPStatus
from typing import Any

# Frameworks log paths as they are. A postback's ends in a secret, and its query is signed.
_POSTBACK = re.compile(r'(/api/postbacks/[^/\s"\\]+/)[^\s"\\]+')


def without_path_tokens(logger: Any, name: str, line: str) -> str:
    """Blot out what follows the network in the path of a postback; a structlog processor of rendered lines."""
    return _POSTBACK.sub(r"\1…", line)


def refusals_are_warnings(record: logging.LogRecord) -> bool:
    """
    Turn lines about refusals down to WARNING; a filter of loggers of Django's that make more of them.

    A refusal for now, 503, is an answer that we chose, and a host name is what
    anybody can make up. What broke is logged where it broke, as ERROR and with its
    trace, and must not drown in these lines.
    """
    told: object = record.msg
    event = told if isinstance(told, dict) else {}
    is_for_now = HTTPStatus.SERVICE_UNAVAILABLE in (getattr(record, "status_code", None), event.get("code"))
    if not is_for_now and not record.name.startswith("django.security."):
        return True
    record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    record.exc_info = record.exc_text = None
    if "level" in event:
        event["level"] = "warning"
    return logging.getLogger(record.name).isEnabledFor(logging.WARNING)
