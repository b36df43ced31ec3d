"""One draw: a drop is rolled for every item, and one of the drops is chosen by weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from checkin.draw.dice import below
from checkin.draw.items import Drop, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """
    What names a draw: who, which day and attempt, and the tables in force as (id, version).

    `day` is the UTC date as YYYY-MM-DD, `profile_address` in its EIP-55 form.
    """

    profile_address: str
    day: str
    attempt: int
    tables: tuple[tuple[int, int], ...]

    def message(self, throw: str) -> str:
        """Return the text that is hashed for a throw of this draw, less the counter."""
        tables = "+".join(f"{number}v{version}" for number, version in self.tables)
        return f"check-in:{self.profile_address}:{self.day}:{self.attempt}:{tables}:{throw}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """The drops that were possible, in the order of the items, and the place of the awarded one."""

    possible: tuple[Drop, ...]
    chosen: int

    @property
    def result(self) -> Drop:
        """Return the awarded drop."""
        return self.possible[self.chosen]


def draw(*, seed: bytes, ticket: Ticket, items: Sequence[Item]) -> Draw:
    """
    Return the draw of a ticket; the same arguments always give the same draw.

    Raises:
        ValueError: there are no items.
    """
    possible = tuple(
        item.drop_at(below(seed=seed, message=ticket.message(f"value:{place}"), outcomes=item.values))
        for place, item in enumerate(items)
    )
    ends = list(accumulate(item.weight for item in items))
    point = below(seed=seed, message=ticket.message("choice"), outcomes=ends[-1] if ends else 0)
    return Draw(possible=possible, chosen=next(place for place, end in enumerate(ends) if point < end))
