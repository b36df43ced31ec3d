"""What the double answers when it does not do what it was asked."""

from typing import Any

from devstack.stripe.state.store import KeepsWork
from devstack.stripe.state.things import Thing

_DOCS = "https://stripe.com/docs/error-codes/"


class Refused(Exception):
    """A request that is answered with Stripe's error body."""

    def __init__(self, status: int, type: str, message: str, **members: Any) -> None:
        super().__init__(message)
        self.status = status
        self.error: Thing = {"message": message, "type": type}
        self.error.update({name: value for name, value in members.items() if value is not None})
        code = self.error.get("code")
        if code:
            self.error["doc_url"] = _DOCS + str(code).replace("_", "-")


class Invalid(Refused):
    """The request cannot be understood, or not now."""

    def __init__(
        self, message: str, *, code: str | None = None, param: str | None = None, status: int = 400
    ) -> None:
        super().__init__(status, "invalid_request_error", message, code=code, param=param)


class Malformed(Invalid):
    """The parameters do not have the shape of the operation, so it never began."""


class NotFound(Invalid):
    """The request names a thing that is not there."""

    def __init__(self, noun: str, identifier: str, *, param: str = "id", status: int = 404) -> None:
        message = f"No such {noun}: '{identifier}'"
        super().__init__(message, code="resource_missing", param=param, status=status)


class CardRefused(Refused):
    """The bank, or the need to ask the cardholder, stands in the way; nothing was done."""

    def __init__(self, error: Thing) -> None:
        members = {name: value for name, value in error.items() if name not in ("type", "message")}
        super().__init__(402, "card_error", str(error["message"]), **members)


class CardRefusedOnRecord(CardRefused, KeepsWork):
    """Like `CardRefused`, but what was tried stays on record."""


class IdempotencyRefused(Refused):
    """The idempotency key was first used for something else."""

    def __init__(self, message: str) -> None:
        super().__init__(400, "idempotency_error", message)
