"""Earnings of generated people, with everything that ad networks do to them afterwards."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from credits.models import EntrySource
from devstack.population.life import Life
from earnings.models import NetworkUser, Postback, PostbackKind, PostbackState
from earnings.networks import ADAPTERS
from rewards.rules import MODIFIER_TYPE_BY_SOURCE, earned_credits

_Kind, _State = PostbackKind, PostbackState
# Those that come twice are told of twice as often.
_SLUGS = (
    "admob",
    "admob",
    "levelplay",
    "tapjoy",
    "adgem",
    "adgem",
    "ayet-studios",
    "bitlabs",
    "bitlabs",
    "cpx-research",
    "theoremreach",
    "visit-link",
    "push-report",
)


def earn(life: Life, at: datetime) -> None:
    """Tell of something at a network; now and then it is undecided, contradicted, above a cap, or undone later."""
    rng = life.town.rng
    slug = rng.choice(_SLUGS)
    amount, chance = Decimal(rng.randint(20, 400)), rng.random()
    if slug == "bitlabs" and chance < 0.15:
        _arrive(life, slug, _Kind.PENDING, at, amount=amount, state=_State.PENDING)
    elif slug == "ayet-studios" and chance < 0.05:
        _arrive(life, slug, _Kind.REVERSAL, at, amount=amount, state=_State.RECEIVED, prefix="r-")
    elif slug == "cpx-research" and chance < 0.1:
        _arrive(life, slug, _Kind.INFO, at, amount=Decimal(0), state=_State.INFO)
    else:
        dear = slug == "cpx-research" and chance > 0.93
        _credit(life, slug, amount * 20 if dear else amount, at)


def _credit(life: Life, slug: str, amount: Decimal, at: datetime) -> None:
    network, source = life.town.networks[slug], ADAPTERS[slug].kind
    benefits = life.benefits(at)
    row = _arrive(life, slug, _Kind.CREDIT, at, amount=amount, state=_State.AVAILABLE)
    row.badge_bonus = benefits.badge_bonuses[MODIFIER_TYPE_BY_SOURCE[source]]
    row.modifier_bonus = benefits.modifier_bonuses[MODIFIER_TYPE_BY_SOURCE[source]]
    row.credits = earned_credits(amount=amount, rate=row.rate, bonus=row.badge_bonus + row.modifier_bonus)
    row.is_conflicting = life.town.rng.random() < 0.01
    if row.credits > (network.per_event_cap or row.credits):
        row.state = _State.REFUSED
        return
    story = _Story(row, slug)
    if network.hold_hours:
        row.state, row.available_at = _State.HELD, at + timedelta(hours=network.hold_hours)
        life.plan(row.available_at, story.release)
    else:
        story.give(life, at)
    if slug not in {"admob", "visit-link"} and life.town.rng.random() < 0.08:
        life.plan(at + timedelta(hours=life.town.rng.uniform(1, 72)), story.reverse)


@dataclass
class _Story:
    """A credit on its way."""

    row: Postback
    slug: str
    gained: int = 0

    @property
    def key(self) -> str:
        return f"earning:{self.slug}:{self.row.external_id}"

    def give(self, life: Life, at: datetime) -> None:
        """Post it."""
        source = ADAPTERS[self.slug].kind
        self.row.state = _State.AVAILABLE
        if self.row.credits:
            self.row.entry = life.post(source, self.row.credits, self.key, at)
            self.gained = life.gain(self.row.credits, self.key, source, at)

    def release(self, life: Life, at: datetime) -> None:
        """Post what was held, unless it was reversed."""
        if self.row.state == _State.HELD:
            self.give(life, at)

    def reverse(self, life: Life, at: datetime) -> None:
        """Take it back."""
        prefix = "r-" if self.slug == "ayet-studios" else ""
        undone = _arrive(
            life, self.slug, _Kind.REVERSAL, at, amount=self.row.amount, state=_State.REVERSED, prefix=prefix
        )
        undone.original_id = self.row.external_id
        undone.external_id = prefix + undone.original_id
        if self.row.entry is not None:
            key = f"reversed-{self.key}"
            undone.credits = self.row.credits
            undone.entry = life.post(EntrySource.EARNING_REVERSAL, -self.row.credits, key, at)
            if self.gained:
                life.unlearn(self.gained, key, EntrySource.EARNING_REVERSAL, at)
        self.row.state = _State.REVERSED


def _arrive(
    life: Life,
    slug: str,
    kind: PostbackKind,
    at: datetime,
    *,
    amount: Decimal,
    state: PostbackState,
    prefix: str = "",
) -> Postback:
    town = life.town
    reference, number = _name(life, slug), town.hexadecimal(10)
    said = f"user={reference}&amount={amount}&id={prefix}{number}&kind={kind}"
    row = Postback(
        network=town.networks[slug],
        external_id=prefix + number,
        kind=kind,
        original_id=number,
        user=life.user,
        state=state,
        amount=amount,
        payout_usd=(amount / 1000).quantize(Decimal("0.001")) if slug != "tapjoy" else None,
        rate=town.networks[slug].rate,
        badge_bonus=Decimal(0),
        modifier_bonus=Decimal(0),
        occurred_at=at - timedelta(seconds=town.rng.randint(1, 40)),
        received_at=at,
        raw=said.encode(),
        headers={"user-agent": f"{slug}/1.0"},
        payload_hash=hashlib.sha256(said.encode()).hexdigest(),
        request_id=town.hexadecimal(16),
    )
    life.rows.append(row)
    return row


def _name(life: Life, slug: str) -> str:
    if slug not in life.names:
        network: Any = life.town.networks[slug]
        reference = life.town.hexadecimal(16)
        life.names[slug] = NetworkUser(network=network, user=life.user, reference=reference)
    return life.names[slug].reference
