"""The rights of a sponsor's members, by their role, and of API keys."""

from enum import StrEnum


class Right(StrEnum):
    """A right that an endpoint of a sponsor requires."""

    READ = "read"
    SIMULATE = "simulate"
    CREATE = "create"
    """Have the sponsor pay for new profiles."""
    MANAGE = "manage"
    """Manage keys and funds, and everything else that costs or moves credits."""
    OWN = "own"
    """Manage members. No key has this right."""


# The rights that a key can have.
SCOPES = (Right.READ, Right.SIMULATE, Right.CREATE, Right.MANAGE)
_VIEWER = frozenset({Right.READ, Right.SIMULATE})
_MANAGER = _VIEWER | {Right.CREATE, Right.MANAGE}
_OF_ROLES = {"viewer": _VIEWER, "manager": _MANAGER, "owner": _MANAGER | {Right.OWN}}


def rights_of(role: str) -> frozenset[Right]:
    """Return the rights of members with this role."""
    return _OF_ROLES[role]
