"""What the lower floors know of a user: enough to own a row, nothing of how the user signs in."""

from typing import Any, Protocol


class ProfileOwner(Protocol):
    """A signed-in user who owns a Universal Profile."""

    pk: Any
    profile_address: str | None
