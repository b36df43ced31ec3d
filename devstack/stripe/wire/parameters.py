"""The parameters of operations, and those that many operations share."""

from dataclasses import dataclass, field
from typing import Any

from devstack.stripe.wire.shapes import Either, Hash, Integer, Several, Shape, Text, Words

MOMENT = Integer(least=0)
MOMENTS = Either(MOMENT, Hash({"gt": MOMENT, "gte": MOMENT, "lt": MOMENT, "lte": MOMENT}))
METADATA = Words()
EXPAND = Several(Text())
CURSORS: dict[str, Shape] = {
    "limit": Integer(least=1, most=100),
    "starting_after": Text(),
    "ending_before": Text(),
}
PAGE: dict[str, Shape] = {**CURSORS, "created": MOMENTS}


@dataclass
class Parameters:
    """The parameters of one operation; every operation also takes `expand`."""

    required: tuple[str, ...] = ()
    fields: dict[str, Shape] = field(default_factory=dict)

    def read(self, form: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters by name; those that were not sent are absent."""
        return Hash({**self.fields, "expand": EXPAND}, self.required).read(form, "")


def takes(*required: str, **fields: Shape) -> Parameters:
    """Return the parameters of one operation."""
    return Parameters(required, fields)
