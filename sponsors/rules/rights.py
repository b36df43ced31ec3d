"""What members of a sponsor may do, by their role, and what the holder of a key may."""

from enum import StrEnum


class Right(StrEnum):
    """What an endpoint of a sponsor needs."""

    READ = "read"
    SIMULATE = "simulate"
    MANAGE = "manage"
    """Keys, funds and whatever else costs or moves credits."""
    OWN = "own"
    """Members. No key has it."""


# The rights that a key can have.
SCOPES = (Right.READ, Right.SIMULATE, Right.MANAGE)
_VIEWER = frozenset({Right.READ, Right.SIMULATE})
_MANAGER = _VIEWER | {Right.MANAGE}
_OF_ROLES = {"viewer": _VIEWER, "manager": _MANAGER, "owner": _MANAGER | {Right.OWN}}


def rights_of(role: str) -> frozenset[Right]:
    """Return what a member with this role may do."""
    return _OF_ROLES[role]
