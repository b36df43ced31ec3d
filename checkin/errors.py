"""The errors of the check-in. Their docstrings are the public catalogue of problems."""

from datetime import datetime

from gateway.common.errors import DomainError


class CheckInUnavailable(DomainError):
    """All attempts of the day are used; the next day begins at `nextCheckInAt`, midnight UTC."""

    code, title, status = "check-in-unavailable", "No check-in is left today", 409

    def __init__(self, *, next_at: datetime) -> None:
        stamp = next_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        super().__init__(f"The next check-in is possible at {stamp}.", nextCheckInAt=stamp)


class CheckInsPaused(DomainError):
    """Staff have paused check-ins. No attempt was used; retry later."""

    code, title, status, retryable = "check-ins-paused", "Check-ins are paused", 503, True

    def __init__(self) -> None:
        super().__init__("Check-ins are paused. Retry later.", retry_after=600)


class CheckInCreditsSpent(DomainError):
    """Check-ins have given all the credits of today. No attempt was used: a repeat today gets the same draw."""

    code, title, status, retryable = "check-in-credits-spent", "Today's credits are given", 503, True

    def __init__(self) -> None:
        super().__init__(
            "Check-ins have given all the credits of today. No attempt was used. Retry later.",
            retry_after=600,
        )


class CheckInsNotReady(DomainError):
    """No draw is possible: no drop table is published, or the day's seed is unavailable. Staff must fix this."""

    code, title, status, retryable = "check-ins-not-ready", "Check-ins are not ready", 503, True

    def __init__(self, detail: str) -> None:
        super().__init__(detail, retry_after=600)


class DropTableNotADraft(DomainError):
    """A published drop table never changes; copy it as a new draft instead."""

    code, title, status = "drop-table-not-a-draft", "The drop table is already published", 409


class DropTableInvalid(DomainError):
    """The drop table breaks a rule of publishing; the detail has the rules."""

    code, title, status = "drop-table-invalid", "The drop table cannot be published", 422


class DropTableChanged(DomainError):
    """The items of the drop table were changed after the review; review them again, then publish."""

    code, title, status = "drop-table-changed", "The drop table is not the one that was reviewed", 409


class DayNotRevealed(DomainError):
    """The draws of a day can be recomputed once its seed is public, 48 hours after the day began."""

    code, title, status = "day-not-revealed", "The seed of that day is not public", 409
