"""Errors of accounting."""

from gateway.common.errors import DomainError


class MonthNotReady(DomainError):
    """The month cannot be prepared or closed yet."""

    code, title, status = "month-not-ready", "The month is not ready", 409
