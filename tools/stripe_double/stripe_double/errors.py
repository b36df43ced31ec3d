"""Stripe's error responses."""

from typing import Any

from stripe_double.store import CommittingError, Resource

_DOCS = "https://stripe.com/docs/error-codes/"
_SERVER_ERRORS = {
    409: ("invalid_request_error", "This object cannot be accessed right now; try again.", "lock_timeout"),
    429: ("invalid_request_error", "Request rate limit exceeded.", "rate_limit"),
    500: ("api_error", "An unknown error occurred", None),
}


class StripeError(Exception):
    """An error with Stripe's error body."""

    def __init__(self, status: int, type: str, message: str, **members: Any) -> None:
        super().__init__(message)
        self.status = status
        self.error: Resource = {"message": message, "type": type}
        self.error.update({name: value for name, value in members.items() if value is not None})
        code = self.error.get("code")
        if code:
            self.error["doc_url"] = _DOCS + str(code).replace("_", "-")


class InvalidRequest(StripeError):
    """The request is invalid, or not possible in the resource's current state."""

    def __init__(
        self, message: str, *, code: str | None = None, param: str | None = None, status: int = 400
    ) -> None:
        super().__init__(status, "invalid_request_error", message, code=code, param=param)


class InvalidParameters(InvalidRequest):
    """The parameters are invalid, so the operation has not started."""


class ResourceMissing(InvalidRequest):
    """The named resource does not exist."""

    def __init__(self, noun: str, identifier: str, *, param: str = "id", status: int = 404) -> None:
        message = f"No such {noun}: '{identifier}'"
        super().__init__(message, code="resource_missing", param=param, status=status)


class CardError(StripeError):
    """The card was declined or needs authentication; all changes are rolled back."""

    def __init__(self, error: Resource) -> None:
        members = {name: value for name, value in error.items() if name not in ("type", "message")}
        super().__init__(402, "card_error", str(error["message"]), **members)


class RecordedCardError(CardError, CommittingError):
    """Like `CardError`, but the failed attempt stays recorded."""


class IdempotencyError(StripeError):
    """The idempotency key was first used for another request."""

    def __init__(self, message: str) -> None:
        super().__init__(400, "idempotency_error", message)


def server_error(status: int) -> StripeError:
    """Return Stripe's error with this status: 409, 429 or 500."""
    kind, message, code = _SERVER_ERRORS.get(status, _SERVER_ERRORS[500])
    return StripeError(status, kind, message, code=code)


def injected_error(status: int, code: str | None, message: str | None) -> StripeError:
    """Return `server_error`, or with another 4xx status a refusal with this code and message."""
    if status >= 500 or status in _SERVER_ERRORS:
        return server_error(status)
    return InvalidRequest(message or "The request is not valid.", code=code, status=status)
