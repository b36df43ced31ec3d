"""
The draw of a check-in and the odds of drops: integers and HMAC-SHA256 of a seed, so that anyone can recompute it.

A drop is rolled for every item, and one of the drops is chosen by weight.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, count

from checkin.models import AMOUNTS

_WHOLE, _FRACTION = Decimal(1), Decimal("0.0001")


def step_of(drop_type: str) -> Decimal:
    """Return the step between neighbouring values of this type."""
    return _WHOLE if drop_type in AMOUNTS else _FRACTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A drop: whole experience or credits, or a bonus of the fraction `value` for `minutes`."""

    drop_type: str
    value: Decimal
    minutes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A kind of drop with its weight, and its possible values: from `least` to `most` in steps."""

    drop_type: str
    weight: int
    least: Decimal
    most: Decimal
    minutes: int | None
    # Days in a row with a check-in, that of the draw included, from which the item can drop.
    streak_days: int = 0

    @property
    def values(self) -> int:
        return int((self.most - self.least) / step_of(self.drop_type)) + 1

    def drop_at(self, index: int) -> Drop:
        """Return the drop with the value at `index`; the least value has index 0."""
        value = self.least + index * step_of(self.drop_type)
        return Drop(drop_type=self.drop_type, value=value, minutes=self.minutes)


def unlocked(items: Iterable[Item], *, streak: int | None) -> list[Item]:
    """Return the items that can drop on the `streak`-th day in a row with a check-in, in order; None is 0."""
    return [item for item in items if item.streak_days <= (streak or 0)]


def streak_levels(items: Iterable[Item]) -> list[int]:
    """Return the streaks from which further items can drop, in order; 0 always is one."""
    return sorted({0, *(item.streak_days for item in items)})


# A throw is the first 8 bytes of an HMAC, read as a big-endian number.
_SPAN = 2**64


def throw(*, seed: bytes, message: str, outcomes: int) -> int:
    """
    Return one of 0 … `outcomes` − 1 with equal probability, determined by `seed` and `message`.

    Rejection sampling makes the outcomes equally likely: a number in the last, incomplete
    run of `outcomes` is discarded, and a new one computed with the next counter in the message.

    Raises:
        ValueError: `outcomes` is not between 1 and 2^64.
    """
    if not 1 <= outcomes <= _SPAN:
        raise ValueError("a throw has between 1 and 2^64 outcomes")
    fair = _SPAN - _SPAN % outcomes
    throws = (_number(seed, f"{message}:{counter}") for counter in count())
    return next(number for number in throws if number < fair) % outcomes


def _number(seed: bytes, message: str) -> int:
    return int.from_bytes(hmac.digest(seed, message.encode(), "sha256")[:8], "big")


def commitment_of(seed: bytes) -> str:
    """Return the commitment to a seed, published before its use: its SHA-256 in hex."""
    return hashlib.sha256(seed).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawIdentity:
    """
    The identity of a draw: profile, day, attempt, and the tables in force as (id, version).

    `day` is the UTC date as YYYY-MM-DD, `profile_address` in its EIP-55 form.
    """

    profile_address: str
    day: str
    attempt: int
    tables: tuple[tuple[int, int], ...]

    def message(self, part: str) -> str:
        tables = "+".join(f"{number}v{version}" for number, version in self.tables)
        return f"check-in:{self.profile_address}:{self.day}:{self.attempt}:{tables}:{part}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """The possible drops in the order of the items, and the index of the awarded one."""

    possible: tuple[Drop, ...]
    chosen: int

    @property
    def result(self) -> Drop:
        return self.possible[self.chosen]


def draw(*, seed: bytes, identity: DrawIdentity, items: Sequence[Item]) -> Draw:
    """
    Return the draw of an identity; the same arguments always give the same draw.

    Raises:
        ValueError: there are no items.
    """
    possible = tuple(
        item.drop_at(throw(seed=seed, message=identity.message(f"value:{place}"), outcomes=item.values))
        for place, item in enumerate(items)
    )
    ends = list(accumulate(item.weight for item in items))
    point = throw(seed=seed, message=identity.message("choice"), outcomes=ends[-1] if ends else 0)
    return Draw(possible=possible, chosen=next(place for place, end in enumerate(ends) if point < end))


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """
    The odds of one type over a number of draws.

    `probability` is that of a single draw; `expected`, `variance` and `most` are of the
    sum over all draws, where a draw that gives another type counts as 0.
    """

    drop_type: str
    probability: Fraction
    expected: Fraction
    variance: Fraction
    most: Decimal

    def over(self, draws: int) -> "Odds":
        """Return the odds over this many independent draws; these odds must be those of a single draw."""
        return Odds(
            drop_type=self.drop_type,
            probability=self.probability,
            expected=self.expected * draws,
            variance=self.variance * draws,
            most=self.most * draws,
        )


def probabilities_of(items: Sequence[Item]) -> list[Fraction]:
    """Return the probability of each item, in order; they add up to 1."""
    total = sum(item.weight for item in items)
    return [Fraction(item.weight, total) for item in items]


def odds_of(items: Sequence[Item]) -> list[Odds]:
    """Return the odds of one draw for every type among the items, in the order of first appearance."""
    weighed = list(zip(items, probabilities_of(items), strict=True))
    types = dict.fromkeys(item.drop_type for item in items)
    return [_odds_of_type(name, [pair for pair in weighed if pair[0].drop_type == name]) for name in types]


def _odds_of_type(drop_type: str, weighed: Sequence[tuple[Item, Fraction]]) -> Odds:
    expected = sum((chance * _mean(item) for item, chance in weighed), Fraction(0))
    squares = sum((chance * (_variance(item) + _mean(item) ** 2) for item, chance in weighed), Fraction(0))
    return Odds(
        drop_type=drop_type,
        probability=sum((chance for _, chance in weighed), Fraction(0)),
        expected=expected,
        variance=squares - expected**2,
        most=max(item.most for item, _ in weighed),
    )


def _mean(item: Item) -> Fraction:
    return (Fraction(item.least) + Fraction(item.most)) / 2


def _variance(item: Item) -> Fraction:
    """Return the variance of n equally likely values that lie a step s apart: s² (n² − 1) / 12."""
    return Fraction(step_of(item.drop_type)) ** 2 * (item.values**2 - 1) / 12
