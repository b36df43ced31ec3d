"""
The economy on paper: whole numbers, fractions and lists, written from the rules and not from the services.

An account on paper knows everything that the rows should say of one user.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from math import floor

PERMANENT, SUBSCRIBER = "PERMANENT", "SUBSCRIBER"
BACK = "BONUS_CREDITS_BACK"
PROOFS = frozenset({"SUBSCRIBED_PAYOUT", "PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS"})
_GRACE = timedelta(hours=72)
_KEPT = timedelta(days=90)


def bonus_on(source: str) -> str:
    """Return the type of modifier that raises earnings of that source."""
    return f"BONUS_{source}_CREDITS"


@dataclass(frozen=True)
class PaperBadge:
    """A badge: from which experience it is worn, and what it grants. Bonuses by type of modifier."""

    track: str
    begins: int
    growth: Fraction
    bonuses: dict[str, Fraction]
    attempts: int
    debt: int


@dataclass
class PaperHold:
    """A hold; `paid` is None until it is closed, and 0 for a release."""

    amount: int
    paid: int | None = None


@dataclass
class PaperModifier:
    """A bonus for a time."""

    kind: str
    value: Fraction
    ends_at: datetime


@dataclass
class PaperPayout:
    """A month that was paid, and what was taken back of it since."""

    credits: int
    collected: int
    starts_at: datetime
    ends_at: datetime
    gained: dict[str, int]
    taken: int = 0
    taken_experience: dict[str, int] = field(default_factory=lambda: {PERMANENT: 0, SUBSCRIBER: 0})


@dataclass
class PaperEarning:
    """What a network told of one event: `state` of the credit, or None while only its reversal came."""

    state: str | None = None
    amount: int = 0
    factor: Fraction = Fraction(0)
    credits: int = 0
    gained: int = 0
    received_at: datetime | None = None
    due_at: datetime | None = None
    is_reversed: bool = False
    # Of the amount; more than any of them where everything is taken back.
    taken: float = 0

    @property
    def kept(self) -> int:
        """The credits that no reversal has taken."""
        return floor((self.amount - int(self.taken)) * self.factor) if self.taken < self.amount else 0


@dataclass
class PaperAccount:
    """One user's credits and experience, with everything that decides about them."""

    ladder: list[PaperBadge]
    entries: list[tuple[int, str]] = field(default_factory=list)
    experience_log: list[tuple[str, int]] = field(default_factory=list)
    holds: list[tuple[int, PaperHold]] = field(default_factory=list)
    modifiers: dict[str, PaperModifier] = field(default_factory=dict)
    payouts: list[PaperPayout] = field(default_factory=list)
    earnings: dict[tuple[str, int], PaperEarning] = field(default_factory=dict)
    check_ins: dict[str, int] = field(default_factory=dict)
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

    def badge(self, track: str) -> PaperBadge:
        reached = [
            badge for badge in self.ladder if badge.track == track and badge.begins <= self.experience(track)
        ]
        return max(reached, key=lambda badge: badge.begins)

    def gain(self, track: str, base: int) -> int:
        """Gain what the base grows to with the badge that is worn."""
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
        if newest.taken >= newest.credits:
            return False
        return newest.starts_at <= now < newest.ends_at + (_GRACE if self.renews else timedelta())

    def worn(self, now: datetime) -> list[PaperBadge]:
        tracks = [PERMANENT, SUBSCRIBER] if self.is_subscribed(now) else [PERMANENT]
        return [self.badge(track) for track in tracks]

    def active(self, now: datetime) -> list[tuple[str, Fraction]]:
        return sorted((found.kind, found.value) for found in self.modifiers.values() if now < found.ends_at)

    def forget_modifiers(self, now: datetime) -> None:
        """Forget those that ended 90 days ago, so that their names may be given again."""
        kept = self.modifiers.items()
        self.modifiers = {key: found for key, found in kept if found.ends_at + _KEPT > now}

    def bonus(self, kind: str, now: datetime) -> Fraction:
        """Return the badges' bonuses and those of the modifiers, of which more than 1 counts as 1."""
        of_modifiers = sum((value for of, value in self.active(now) if of == kind), Fraction(0))
        return sum((badge.bonuses[kind] for badge in self.worn(now)), Fraction(0)) + min(
            Fraction(1), of_modifiers
        )

    def debt_limit(self, now: datetime) -> int:
        return max(badge.debt for badge in self.worn(now))

    def attempts(self, now: datetime) -> int:
        return 1 + sum(badge.attempts for badge in self.worn(now))

    def affords(self, more: int, debt_limit: int) -> bool:
        return self.balance - self.held - more >= -debt_limit

    def charge(self, hold: PaperHold, cost: int, now: datetime) -> None:
        """Capture the hold, gain experience for the cost, and get a part of it back."""
        hold.paid = cost
        self.post(-cost, "RELAY_TRANSACTION")
        self.gain(PERMANENT, cost)
        returned = min(cost, floor(cost * self.bonus(BACK, now)))
        if returned:
            self.post(returned, "CREDITS_BACK")

    def pay_out(self, payout: PaperPayout, *, base: int) -> None:
        """Turn a collected month into credits and experience on both tracks."""
        self.post(payout.credits, "SUBSCRIBED_PAYOUT")
        payout.gained[SUBSCRIBER] = self.gain(SUBSCRIBER, base)
        payout.gained[PERMANENT] = self.gain(PERMANENT, payout.credits)
        self.payouts.append(payout)

    def claw_back(self, payout: PaperPayout, gone: int) -> None:
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
