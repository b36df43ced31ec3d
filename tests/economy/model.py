"""
The reference model of the economy: integers, fractions and lists, written from the rules and not from the services.

A `ModelAccount` has everything that the rows should have of one user: entries, experience, holds, modifiers,
payouts, and earnings, which are credited at once or held, capped, and reversed before or after.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from math import floor
from typing import NamedTuple

PERMANENT, SUBSCRIBER = "PERMANENT", "SUBSCRIBER"
BACK = "BONUS_CREDITS_BACK"
PROOFS = frozenset({"SUBSCRIBED_PAYOUT", "CREDIT_PURCHASE", "PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS"})
DISPROOFS = frozenset({"EARNING_REVERSAL", "PAYOUT_CLAWBACK"})
_GRACE = timedelta(hours=72)
_KEPT = timedelta(days=90)


def bonus_on(source: str) -> str:
    """Return the type of modifier that raises earnings of that source."""
    return f"BONUS_{source}_CREDITS"


@dataclass(frozen=True)
class ModelBadge:
    """A badge: from which experience a user has it, and what it grants. Bonuses by type of modifier."""

    track: str
    begins: int
    growth: Fraction
    bonuses: dict[str, Fraction]
    attempts: int
    debt: int


@dataclass
class ModelHold:
    """A hold; `paid` is None until it is closed, and 0 for a release."""

    amount: int
    paid: int | None = None
    gained: int = 0
    returned: Fraction = Fraction(0)


@dataclass
class ModelModifier:
    """A bonus for a time."""

    kind: str
    value: Fraction
    ends_at: datetime


@dataclass
class ModelPayout:
    """A month that was paid, and what was taken back of it since."""

    credits: int
    collected: int
    starts_at: datetime
    ends_at: datetime
    gained: dict[str, int]
    taken: int = 0
    taken_experience: dict[str, int] = field(default_factory=lambda: {PERMANENT: 0, SUBSCRIBER: 0})


@dataclass
class ModelEarning:
    """What a network told of one event: `state` of the credit, or None while only its reversal came."""

    state: str | None = None
    amount: int = 0
    factor: Fraction = Fraction(0)
    credits: int = 0
    gained: int = 0
    received_at: datetime | None = None
    due_at: datetime | None = None
    reversed_at: datetime | None = None
    # Of the amount; it may be more than the amount.
    taken: int = 0

    @property
    def kept(self) -> int:
        """The credits that no reversal has taken."""
        return floor((self.amount - self.taken) * self.factor) if self.taken < self.amount else 0


@dataclass
class ModelAccount:
    """One user's credits and experience, with everything that decides about them."""

    badges: list[ModelBadge]
    entries: list[tuple[int, str]] = field(default_factory=list)
    experience_log: list[tuple[str, int]] = field(default_factory=list)
    holds: list[tuple[int, ModelHold]] = field(default_factory=list)
    modifiers: dict[str, ModelModifier] = field(default_factory=dict)
    payouts: list[ModelPayout] = field(default_factory=list)
    earnings: dict[tuple[str, int], ModelEarning] = field(default_factory=dict)
    check_ins: dict[str, int] = field(default_factory=dict)
    cashback_due: Fraction = Fraction(0)
    renews: bool = True

    @property
    def balance(self) -> int:
        return sum(amount for amount, _ in self.entries)

    @property
    def held(self) -> int:
        return sum(hold.amount for _, hold in self.holds if hold.paid is None)

    @property
    def is_proven(self) -> bool:
        return any(source in PROOFS for _, source in self.entries)

    def experience(self, track: str) -> int:
        return sum(amount for of, amount in self.experience_log if of == track)

    def post(self, amount: int, source: str) -> None:
        self.entries.append((amount, source))

    def badge(self, track: str) -> ModelBadge:
        reached = [
            badge for badge in self.badges if badge.track == track and badge.begins <= self.experience(track)
        ]
        return max(reached, key=lambda badge: badge.begins)

    def gain(self, track: str, base: int) -> int:
        """Gain what the base grows to with the current badge."""
        amount = floor(base * self.badge(track).growth)
        self.experience_log.append((track, amount))
        return amount

    def move_experience(self, track: str, amount: int) -> None:
        """Take experience (negative), never more than there is, or give it again."""
        self.experience_log.append((track, max(amount, -self.experience(track))))

    def is_subscribed(self, now: datetime) -> bool:
        """Tell whether the newest month counts: paid, not taken back whole, not over, or awaiting its renewal."""
        if not self.payouts:
            return False
        newest = self.payouts[-1]
        # Several invoices can pay for one month.
        of_month = [payout for payout in self.payouts if payout.starts_at == newest.starts_at]
        if all(payout.taken >= payout.credits for payout in of_month):
            return False
        return newest.starts_at <= now < newest.ends_at + (_GRACE if self.renews else timedelta())

    def current_badges(self, now: datetime) -> list[ModelBadge]:
        tracks = [PERMANENT, SUBSCRIBER] if self.is_subscribed(now) else [PERMANENT]
        return [self.badge(track) for track in tracks]

    def active(self, now: datetime) -> list[tuple[str, Fraction]]:
        return sorted(
            (modifier.kind, modifier.value) for modifier in self.modifiers.values() if now < modifier.ends_at
        )

    def forget_modifiers(self, now: datetime) -> None:
        """Forget those that ended 90 days ago, so that their names may be given again."""
        kept = self.modifiers.items()
        self.modifiers = {key: modifier for key, modifier in kept if modifier.ends_at + _KEPT > now}

    def bonus(self, kind: str, now: datetime) -> Fraction:
        """Return the badges' bonuses and those of the modifiers, of which more than 1 counts as 1."""
        of_modifiers = sum((value for of, value in self.active(now) if of == kind), Fraction(0))
        return sum((badge.bonuses[kind] for badge in self.current_badges(now)), Fraction(0)) + min(
            Fraction(1), of_modifiers
        )

    def debt_limit(self, now: datetime) -> int:
        kept = sum(amount for amount, source in self.entries if source in PROOFS | DISPROOFS)
        return min(self.badge_debt(now), max(0, kept))

    def badge_debt(self, now: datetime) -> int:
        return max(badge.debt for badge in self.current_badges(now))

    def attempts(self, now: datetime) -> int:
        return 1 + sum(badge.attempts for badge in self.current_badges(now))

    def affords(self, more: int, debt_limit: int) -> bool:
        return self.balance - self.held - more >= -debt_limit

    def charge(self, hold: ModelHold, cost: int, now: datetime) -> None:
        """Capture the hold, gain experience for the cost, and get a part of it back."""
        hold.paid = cost
        self.post(-cost, "RELAY_TRANSACTION")
        hold.gained = self.gain(PERMANENT, cost)
        hold.returned = cost * min(Fraction(1), self.bonus(BACK, now))
        self._give_back(hold.returned, "CREDITS_BACK")

    def _give_back(self, exact: Fraction, source: str) -> None:
        """Post the whole credits due by now; the rest stays due."""
        self.cashback_due += exact
        if whole := floor(self.cashback_due):
            self.cashback_due -= whole
            self.post(whole, source)

    def reopen(self, hold: ModelHold) -> None:
        """Give back what was charged, take back what followed from it, and hold the credits as before."""
        if hold.paid:
            self.post(hold.paid, "RELAY_REVERSAL")
            self._give_back(-hold.returned, "RELAY_REVERSAL")
            if hold.gained:
                self.move_experience(PERMANENT, -hold.gained)
        hold.paid = None
        hold.gained, hold.returned = 0, Fraction(0)

    def pay_out(self, payout: ModelPayout, *, base: int) -> None:
        """Turn a collected month into credits and experience on both tracks."""
        self.post(payout.credits, "SUBSCRIBED_PAYOUT")
        payout.gained[SUBSCRIBER] = self.gain(SUBSCRIBER, base)
        payout.gained[PERMANENT] = self.gain(PERMANENT, payout.credits)
        self.payouts.append(payout)

    def claw_back(self, payout: ModelPayout, gone: int) -> None:
        """Bring what was taken back of the payout to its share of the money that is gone."""
        share = Fraction(min(gone, payout.collected), payout.collected)
        step = floor(payout.credits * share) - payout.taken
        if step:
            self.post(-step, "PAYOUT_CLAWBACK")
        payout.taken += step
        for track in (SUBSCRIBER, PERMANENT):
            taken = floor(payout.gained[track] * share)
            if taken != payout.taken_experience[track]:
                self.move_experience(track, payout.taken_experience[track] - taken)
            payout.taken_experience[track] = taken


class ModelNetwork(NamedTuple):
    """A network's terms."""

    slug: str
    source: str
    rate: Fraction
    hold_hours: int = 0
    daily_cap: int | None = None
    reverses: bool = True


# One of each kind; the second gives a day later, the third no more than so much a day.
NETWORKS = (
    ModelNetwork("levelplay", "VIDEO_ADS", Fraction(5, 2)),
    ModelNetwork("bitlabs", "SURVEYS", Fraction(3, 4), hold_hours=24),
    ModelNetwork("adgem", "OFFERWALL", Fraction(11, 10), daily_cap=150),
    ModelNetwork("visit-link", "PUSH_ADS", Fraction(5), reverses=False),
)


def credit_earning(
    account: ModelAccount, network: ModelNetwork, number: int, amount: int, now: datetime
) -> None:
    """Hear that the user earned an amount; the first word counts."""
    earning = account.earnings.setdefault((network.slug, number), ModelEarning())
    if earning.state is not None:
        return
    bonus = account.bonus(bonus_on(network.source), now)
    earning.amount, earning.factor = amount, network.rate * (1 + bonus)
    earning.credits = floor(amount * earning.factor)
    earning.received_at = now
    if earning.taken >= amount:
        earning.state = "REVERSED"
    elif network.daily_cap is not None and _earned_today(account, network, now) > network.daily_cap:
        # Staff do not release it.
        earning.state = "HELD"
    elif network.hold_hours or _are_often_reversed(account, earning, now):
        days = 14 if _are_often_reversed(account, earning, now) else 0
        hold = max(timedelta(hours=network.hold_hours), timedelta(days=days))
        earning.state, earning.due_at = "HELD", now + hold
    else:
        _post_earning(account, network, earning)


def reverse_earning(
    account: ModelAccount, network: ModelNetwork, number: int, amount: int, now: datetime
) -> None:
    """Hear that the earning is taken back, once; it may not have come yet."""
    earning = account.earnings.setdefault((network.slug, number), ModelEarning())
    if earning.reversed_at is not None:
        return
    earning.reversed_at = now
    before = earning.kept
    earning.taken = amount
    lost = before - earning.kept
    if earning.state == "AVAILABLE" and lost:
        account.post(-lost, "EARNING_REVERSAL")
        if unlearned := earning.gained * lost // before:
            account.move_experience(PERMANENT, -unlearned)
    if earning.state in {"AVAILABLE", "HELD"} and earning.taken >= earning.amount:
        earning.state = "REVERSED"


def release_due_earnings(account: ModelAccount, now: datetime) -> None:
    """Give what was held until now, in the order in which it is due."""
    held = [
        (earning.due_at, place, slug, earning)
        for place, ((slug, _), earning) in enumerate(account.earnings.items())
        if earning.state == "HELD" and earning.due_at is not None and earning.due_at <= now
    ]
    for _, _, slug, earning in sorted(held, key=lambda item: item[:2]):
        _post_earning(account, next(network for network in NETWORKS if network.slug == slug), earning)


def _post_earning(account: ModelAccount, network: ModelNetwork, earning: ModelEarning) -> None:
    earning.state = "AVAILABLE"
    if earning.kept:
        account.post(earning.kept, network.source)
        earning.gained = account.gain(PERMANENT, earning.kept)


def _are_often_reversed(account: ModelAccount, current: ModelEarning, now: datetime) -> bool:
    """Return whether half of the user's earnings of 90 days, five at least, were taken back."""
    since = now - timedelta(days=90)
    others = [
        earning
        for earning in account.earnings.values()
        if earning is not current and earning.received_at is not None and earning.received_at >= since
    ]
    reversals = [
        earning
        for earning in account.earnings.values()
        if earning.reversed_at is not None and earning.reversed_at >= since and earning.credits > earning.kept
    ]
    return len(others) >= 5 and 2 * len(reversals) >= len(others)


def _earned_today(account: ModelAccount, network: ModelNetwork, now: datetime) -> int:
    """Return what the user earned there since midnight, with the one that is being heard."""
    return sum(
        earning.credits
        for (slug, _), earning in account.earnings.items()
        if slug == network.slug
        and (earning.state in {None, "AVAILABLE"} or earning.due_at is not None)
        and earning.state != "REVERSED"
        and earning.received_at is not None
        and earning.received_at.date() == now.date()
    )
