"""What may drop, and what has dropped."""

from dataclasses import dataclass
from decimal import Decimal

# Whole amounts that take effect at once; every other type is a fraction for some minutes.
MINUTELESS = frozenset({"EXPERIENCE", "CREDITS"})
_WHOLE, _FRACTION = Decimal(1), Decimal("0.0001")


def grain_of(drop_type: str) -> Decimal:
    """Return the distance between neighbouring values of that type."""
    return _WHOLE if drop_type in MINUTELESS else _FRACTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Something won: whole experience or credits, or a bonus of the fraction `value` for `minutes`."""

    drop_type: str
    value: Decimal
    minutes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A kind of drop with its weight, and the values it may have: `least`, `most` and every grain between."""

    drop_type: str
    weight: int
    least: Decimal
    most: Decimal
    minutes: int | None

    @property
    def values(self) -> int:
        """Return how many values the drop may have."""
        return int((self.most - self.least) / grain_of(self.drop_type)) + 1

    def drop_at(self, index: int) -> Drop:
        """Return the drop of the `index`-th value, counted from 0 at the least one."""
        value = self.least + index * grain_of(self.drop_type)
        return Drop(drop_type=self.drop_type, value=value, minutes=self.minutes)
