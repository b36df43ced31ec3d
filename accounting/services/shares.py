"""Divides the money of each sale among the accounts that have its credits: the payer's, and sponsors'."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from accounting.queries import Owner, Returned, Sale
from accounting.rules import Part, kept_net, values
from credits.lots import Lots

# The key of a total: a name, and its kind, source or currency.
Key = tuple[str, ...]
# An owner, the source of credits, and a currency.
PersonKey = tuple[Owner, str, str]


class Money(NamedTuple):
    """Totals in minor units, and the revenue by owner."""

    totals: Counter[Key]
    revenue: Counter[PersonKey]


class Shares:
    """The accounts that have credits of each sale, at one time. `sales` has the sale of each lot, by its entry."""

    def __init__(self, sales: Mapping[int, Sale]) -> None:
        self._sales = sales
        self._by_sale: dict[int, list[tuple[Owner, Part]]] = {}

    def add(self, owner: Owner, lots: Lots) -> None:
        """Add the paid lots of an account, in their current state."""
        for lot in lots:
            if sale := self._sales.get(lot.entry_id):
                own = self._by_sale.setdefault(sale.entry_id, [])
                # The payer's account comes first.
                place = 0 if lot.entry_id == sale.entry_id else len(own)
                own.insert(place, (owner, Part(lot.kept, lot.remaining)))

    def money(self, returned: Mapping[int, Returned], erased: Collection[int]) -> Money:
        """
        Return the money of these sales, less the money returned by payout.

        The money for unused credits of `erased` users counts as breakage: these credits will never be used.
        """
        totals: Counter[Key] = Counter()
        revenue: Counter[PersonKey] = Counter()
        for entry_id, own in self._by_sale.items():
            sale = self._sales[entry_id]
            currency, net = sale.money.currency, sale.money.net_minor
            kept = kept_net(sale.money, returned.get(sale.payout_id, Returned(0, 0)).total)
            totals["collected", currency] += net
            totals["returned", currency] += net - kept
            worth = values([part for _, part in own], kept)
            for (owner, _), value in zip(own, worth, strict=True):
                totals["breakage" if owner.user_id in erased else "deferred", currency] += value.owed
                totals["revenue", sale.source, currency] += value.earned
                revenue[owner, sale.source, currency] += value.earned
        return Money(totals, revenue)
