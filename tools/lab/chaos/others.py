"""How a fault of one part slows the calls that have nothing to do with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from lab.chaos.traffic import Call

_MOST_SLOWED = 2.0


@dataclass(frozen=True)
class Slowed:
    """The median seconds to a hash before a fault and while it lasts, and the profiles without any hash meanwhile."""

    before: float
    during: float
    held_up: int

    @property
    def factor(self) -> float:
        """By how much others were slowed."""
        return self.during / self.before

    def wrong(self, *, most_held_up: int) -> list[str]:
        """Return what is beyond the bounds."""
        times = f"{self.before:.3f} s before, {self.during:.3f} s meanwhile"
        return [
            *([f"others are slowed: {times}"] if self.factor > _MOST_SLOWED else []),
            *([f"no call of {self.held_up} profiles was accepted"] if self.held_up > most_held_up else []),
        ]


def slowed(calls: Sequence[Call], *, since: float, began: float, ended: float) -> Slowed:
    """Compare calls that were served from `since` to `began` with those served from then to `ended`."""
    answered = [call for call in calls if call.answered_at]
    before = [call for call in answered if since <= call.answered_at < began]
    during = [call for call in answered if began <= call.answered_at < ended]
    if not before or not during:
        raise RuntimeError("No call was answered before the fault, or during it.")
    submitted = {call.wallet.profile_address for call in calls if began <= call.began_at < ended}
    return Slowed(
        _median_seconds(before),
        _median_seconds(during),
        held_up=len(submitted - {call.wallet.profile_address for call in during}),
    )


def _median_seconds(calls: Sequence[Call]) -> float:
    return median(call.answered_at - call.began_at for call in calls)
