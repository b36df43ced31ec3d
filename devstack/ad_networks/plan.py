"""Who is told to have earned what, how often and in which order; and what everybody must have in the end."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_FLOOR, Decimal

from devstack.ad_networks.dialects import WITHOUT_REVERSALS, Told

DUPLICATES, REVERSALS = 0.30, 0.05


@dataclass(frozen=True)
class Said:
    """One postback of the plan; `person` is an index."""

    slug: str
    person: int
    told: Told


@dataclass(frozen=True)
class Plan:
    """The postbacks in the order in which they are sent, and the credits of each person afterwards."""

    said: list[Said]
    credits: list[int]
    distinct: int


def make_plan(
    rng: random.Random,
    *,
    count: int,
    references: Sequence[dict[str, str]],
    rates: dict[str, Decimal],
    now: datetime,
) -> Plan:
    """
    Return `count` postbacks, 30 % of them repeats and 5 % reversals, shuffled.

    `references` has the name of each person at every network. Reversals may so come
    before what they reverse, and repeats long after it.
    """
    reversals, repeats = round(count * REVERSALS), round(count * DUPLICATES)
    earnings = [_earning(rng, references, list(rates), now) for _ in range(count - reversals - repeats)]
    reversible = [earning for earning in earnings if earning.slug not in WITHOUT_REVERSALS]
    undone = rng.sample(reversible, reversals)
    distinct = earnings + [_reversal(earning) for earning in undone]
    said = distinct + rng.choices(distinct, k=repeats)
    rng.shuffle(said)
    lost = {earning.told.external_id for earning in undone}
    worth_of = [0] * len(references)
    for earning in earnings:
        if earning.told.external_id not in lost:
            worth = Decimal(earning.told.amount) * rates[earning.slug]
            worth_of[earning.person] += int(worth.to_integral_value(rounding=ROUND_FLOOR))
    return Plan(said, worth_of, len(distinct))


def _earning(
    rng: random.Random, references: Sequence[dict[str, str]], slugs: list[str], now: datetime
) -> Said:
    slug, person = rng.choice(slugs), rng.randrange(len(references))
    told = Told(
        external_id=f"o{rng.getrandbits(80):020x}",
        user=references[person][slug],
        amount=str(rng.randint(1, 400)),
        at=now,
    )
    return Said(slug, person, told)


def _reversal(earning: Said) -> Said:
    told = earning.told
    undone = Told(
        external_id=told.external_id, user=told.user, amount=told.amount, at=told.at, is_reversal=True
    )
    return Said(earning.slug, earning.person, undone)
