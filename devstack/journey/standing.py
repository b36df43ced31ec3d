"""What the dashboard says of a user, and the arithmetic that follows from it."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

from devstack.wallet import Wallet

Thing = dict[str, Any]
Manage = Callable[..., str]
# The badge's field and the modifier's type that raise earnings of a kind.
_RAISED = {
    "PUSH_ADS": ("bonus_creds_push_ads", "BONUS_PUSH_ADS_CREDITS"),
    "VIDEO_ADS": ("bonus_creds_video_ads", "BONUS_VIDEO_ADS_CREDITS"),
    "OFFERWALL": ("bonus_creds_offerwall", "BONUS_OFFERWALL_CREDITS"),
    "SURVEYS": ("bonus_creds_surveys", "BONUS_SURVEYS_CREDITS"),
    "CREDITS_BACK": ("credits_back_percent", "BONUS_CREDITS_BACK"),
}
_TOP = 2**53 - 1


@dataclass(frozen=True)
class Standing:
    """One answer of the dashboard."""

    shown: Thing

    @classmethod
    def of(cls, wallet: Wallet) -> "Standing":
        """Read the dashboard."""
        return cls(wallet.dashboard())

    @property
    def credits(self) -> int:
        """Available credits."""
        return int(self.shown["userInfo"]["credits"])

    @property
    def experience(self) -> int:
        """Permanent experience."""
        return int(self.shown["userInfo"]["permanentExp"])

    @property
    def badge(self) -> Thing:
        """The permanent badge."""
        found: Thing = self.shown["permanentBadge"]
        return found

    @property
    def is_at_the_top(self) -> bool:
        """Whether no permanent badge follows."""
        return bool(self.badge["exp_upper_bound"] == _TOP)

    @property
    def newest(self) -> Thing | None:
        """The newest entry of the earning history."""
        found: list[Thing] = self.shown["earningHistory"]
        return found[0] if found else None

    def bonus(self, kind: str) -> Fraction:
        """Return what badges and active modifiers add: to earnings of a kind, or of a cost as credits back."""
        field, modifier_type = _RAISED[kind]
        worn = ["permanentBadge"] + ["subscriberBadge"] * self.shown["userInfo"]["isSubscriber"]
        badges = sum((exact(self.shown[name][field]) for name in worn), Fraction(0))
        active = [it for it in self.shown["modifiers"] if it["modifier_type"] == modifier_type]
        return badges + min(Fraction(1), sum((exact(it["value"]) for it in active), Fraction(0)))

    def worth(self, *, amount: int, rate: Fraction, kind: str) -> int:
        """Return the credits of an earning."""
        return floor(amount * rate * (1 + self.bonus(kind)))

    def growth(self, base: int) -> int:
        """Return the permanent experience that `base` grows to."""
        return floor(base * exact(self.badge["exp_growth_rate"]))


def exact(number: float | str) -> Fraction:
    """Return a JSON number as the decimal that was written."""
    return Fraction(str(number))
