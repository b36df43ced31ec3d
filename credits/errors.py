"""What the ledger refuses."""

from gateway.common.errors import DomainError


class InsufficientCredits(DomainError):
    """
    The account cannot set aside that many credits without owing more than it may.

    `required` are needed, `available` are there (fewer than 0 in debt), and `debtLimit` may be owed.
    """

    code, title, status = "insufficient-credits", "Not enough credits", 402

    def __init__(self, *, required: int, available: int, debt_limit: int) -> None:
        super().__init__(
            f"This needs {required} credits; {available} are available and {debt_limit} may be owed.",
            required=required,
            available=available,
            debtLimit=debt_limit,
        )


class KeyConflict(DomainError):
    """The `key` already names something else; a new cause needs a new key."""

    code, title, status = "key-conflict", "The key is taken", 409

    def __init__(self, *, key: str) -> None:
        super().__init__("This key was used before, with other content. Use a new key.", key=key)


class HoldReleased(DomainError):
    """The hold, `holdId`, gave its credits back; there is nothing left to capture."""

    code, title, status = "hold-released", "The credits are no longer held", 409

    def __init__(self, *, hold_id: int) -> None:
        super().__init__("The hold was released before it could be captured.", holdId=hold_id)
