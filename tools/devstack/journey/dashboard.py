"""The wallet's dashboard: its figures, the expected credits of an earning, and its histories."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

from devstack.console import echo
from devstack.journey.checks import expect
from devstack.wallet import Wallet

JsonObject = dict[str, Any]
Manage = Callable[..., str]
# The badge's field and the modifier's type that raise earnings of a kind.
_BONUSES = {
    "PUSH_ADS": ("bonus_creds_push_ads", "BONUS_PUSH_ADS_CREDITS"),
    "VIDEO_ADS": ("bonus_creds_video_ads", "BONUS_VIDEO_ADS_CREDITS"),
    "OFFERWALL": ("bonus_creds_offerwall", "BONUS_OFFERWALL_CREDITS"),
    "SURVEYS": ("bonus_creds_surveys", "BONUS_SURVEYS_CREDITS"),
    "CREDITS_BACK": ("credits_back_percent", "BONUS_CREDITS_BACK"),
}
_TOP = 2**53 - 1
_PRINTED_ROWS, _LONGEST_HISTORY = 6, 100


@dataclass(frozen=True)
class Dashboard:
    """One response of the dashboard."""

    shown: JsonObject

    @classmethod
    def of(cls, wallet: Wallet) -> "Dashboard":
        """Read the dashboard."""
        return cls(dict(wallet.dashboard()))

    @property
    def credits(self) -> int:
        """Available credits."""
        return int(self.shown["userInfo"]["credits"])

    @property
    def experience(self) -> int:
        """Permanent experience."""
        return int(self.shown["userInfo"]["permanentExp"])

    @property
    def badge(self) -> JsonObject:
        """The permanent badge."""
        badge: JsonObject = self.shown["permanentBadge"]
        return badge

    @property
    def is_at_the_top(self) -> bool:
        """Whether the top permanent badge is reached."""
        return bool(self.badge["exp_upper_bound"] == _TOP)

    @property
    def newest(self) -> JsonObject | None:
        """The newest entry of the earning history."""
        earnings: list[JsonObject] = self.shown["earningHistory"]
        return earnings[0] if earnings else None

    def bonus(self, kind: str) -> Fraction:
        """Return the bonus of badges and active modifiers on earnings of a kind, or on credits back."""
        field, modifier_type = _BONUSES[kind]
        names = ["permanentBadge"] + ["subscriberBadge"] * self.shown["userInfo"]["isSubscriber"]
        badges = sum((exact(self.shown[name][field]) for name in names), Fraction(0))
        active = [row for row in self.shown["modifiers"] if row["modifier_type"] == modifier_type]
        return badges + min(Fraction(1), sum((exact(row["value"]) for row in active), Fraction(0)))

    def worth(self, *, amount: int, rate: Fraction, kind: str) -> int:
        """Return the credits of an earning."""
        return floor(amount * rate * (1 + self.bonus(kind)))

    def growth(self, base: int) -> int:
        """Return the permanent experience for `base` with all bonuses."""
        return floor(base * exact(self.badge["exp_growth_rate"]))


def exact(number: float | str) -> Fraction:
    """Return a JSON number as an exact decimal."""
    return Fraction(str(number))


def check_dashboard(wallet: Wallet) -> None:
    """Print the dashboard, and check its figures against each other and against the quota."""
    dashboard = Dashboard.of(wallet)
    info = dashboard.shown["userInfo"]
    earnings, calls = dashboard.shown["earningHistory"], dashboard.shown["transactionHistory"]
    expect("the credits on the dashboard", dashboard.credits, wallet.quota()["quota"])
    _check_rows(wallet, earnings, calls)
    start = _walk_back(dashboard.credits, earnings, calls)
    if len(earnings) < _LONGEST_HISTORY and len(calls) < _LONGEST_HISTORY:
        expect("where the histories begin", start, 0)
    echo("  ✓ dashboard:")
    for name, value in info.items():
        echo(f"      {name} {value}")
    for name in ("permanentBadge", "subscriberBadge"):
        badge = dashboard.shown[name]
        bounds = f"{badge['exp_lower_bound']} to {badge['exp_upper_bound']} exp"
        terms = f"offers +{badge['bonus_creds_offerwall']:.0%}, {badge['credits_back_percent']:.1%} back"
        echo(f"      {name}: {bounds}, {terms}")
    for modifier in dashboard.shown["modifiers"]:
        echo(
            f"      modifier {modifier['modifier_type']} {modifier['value']:.2%} until {modifier['expires_at']}"
        )
    _print_histories(earnings, calls)
    echo(f"    {len(earnings)} earnings and {len(calls)} relay transactions explain every credit")


def _check_rows(wallet: Wallet, earnings: list[JsonObject], calls: list[JsonObject]) -> None:
    for row in (*earnings, *calls):
        expect("related_user", row["related_user"], wallet.profile_address)
    for earning in earnings:
        after = earning["credits_before"] + earning["credits_earned"]
        expect("credits_after of an earning", earning["credits_after"], after)
    for call in calls:
        used = call["credits_before"] - call["real_cost"]
        expect(f"credits_after of {call['transaction_hash']}", call["credits_after"], used)


def _walk_back(balance: int, earnings: list[JsonObject], calls: list[JsonObject]) -> int:
    """Follow both histories back; each row must end with the next one's initial balance."""
    rest = [list(earnings), [call for call in calls if call["real_cost"]]]
    while any(rest) and not (_is_cut_off(earnings, rest[0]) or _is_cut_off(calls, rest[1])):
        matching = [rows for rows in rest if rows and rows[0]["credits_after"] == balance]
        expect(f"that a row ends at {balance}, which the next one began with", bool(matching), True)
        balance = matching[0].pop(0)["credits_before"]
    return balance


def _is_cut_off(shown: list[JsonObject], left: list[JsonObject]) -> bool:
    return len(shown) == _LONGEST_HISTORY and not left


def _print_histories(earnings: list[JsonObject], calls: list[JsonObject]) -> None:
    for earning in earnings[:_PRINTED_ROWS]:
        moved = f"{earning['credits_before']} → {earning['credits_after']}"
        echo(f"      {earning['credit_source']} {earning['credits_earned']:+d}: {moved}")
    for call in calls[:_PRINTED_ROWS]:
        moved = f"{call['credits_before']} → {call['credits_after']}"
        echo(f"      {call['transaction_hash'][:14]}… {call['status']} −{call['real_cost']}: {moved}")
