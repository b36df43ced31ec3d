"""The errors of the ledger."""

from gateway.common.errors import DomainError


class InsufficientCredits(DomainError):
    """
    The credits available and the debt limit do not cover the required credits.

    `required` credits are needed, `available` are available (negative in debt), and `debtLimit` is the debt limit: that
    of the badge, the credits kept of payments and earnings, or what the service still lends today, whichever is least.
    """

    code, title, status = "insufficient-credits", "Not enough credits", 402

    def __init__(
        self, *, required: int, available: int, debt_limit: int, lendable: int | None = None
    ) -> None:
        """`lendable` is the debt that the service still allows to all users together today; None if it is not known."""
        detail = f"You need {required} credits; you have {available}, and your debt limit is "
        if lendable is not None and available + debt_limit >= required:
            debt_limit = min(debt_limit, max(0, -available) + lendable)
            detail += (
                f"{debt_limit} until midnight UTC, because the service has lent all that it lends in a day."
            )
        else:
            detail += f"{debt_limit}."
        super().__init__(
            detail,
            required=required,
            available=available,
            debtLimit=debt_limit,
        )


class KeyConflict(DomainError):
    """The `key` was already used for something else. Use a new key."""

    code, title, status = "key-conflict", "The key has been used", 409

    def __init__(self, *, key: str) -> None:
        super().__init__("This key was used with other content. Use a new key.", key=key)


class HoldReleased(DomainError):
    """The hold, `holdId`, has been released; there is nothing left to capture."""

    code, title, status = "hold-released", "The credits are no longer held", 409

    def __init__(self, *, hold_id: int) -> None:
        super().__init__("The hold was released before it could be captured.", holdId=hold_id)
