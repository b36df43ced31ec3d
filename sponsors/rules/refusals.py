"""A rule's refusal, and the case that rules decide."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sponsors.errors import PolicyRefused
from sponsors.rules.policies import Facts, PolicyVersion, Usage


class Case(NamedTuple):
    """
    One call checked against one version of a policy; `part` is the most that the sponsor would pay, in credits.

    It includes first credits. Only the limit of a call leaves them out.
    """

    version: PolicyVersion
    facts: Facts
    usage: Usage
    part: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """
    The rule of one policy that refused the call.

    `limit` is the rule's limit, `used` how much of it was used before this call, `resets` when usage is reset, and
    `fits` what the rule would accept; each is None if the rule has no such value. `extra` has members of this rule
    only.
    """

    error: type[PolicyRefused]
    detail: str
    limit: int | str | None = None
    used: int | None = None
    resets: datetime | None = None
    fits: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def code(self) -> str:
        """Return the problem code, such as `sponsor-limit-user-day`."""
        return self.error.code

    def members(self) -> dict[str, Any]:
        """Return the refusal as members of the problem document, without those that are None."""
        resets = self.resets.isoformat() if self.resets else None
        known = {"limit": self.limit, "used": self.used, "resets": resets, "fits": self.fits}
        return {name: value for name, value in known.items() if value is not None} | dict(self.extra)
