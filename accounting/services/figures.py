"""
The ledger's figures of a month: the money owed to holders, the money earned by use, and the gas spent for it.

All movements are differences of totals at two times, so opening, movements and closing add up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from typing import TypeVar

from django.conf import settings

from accounting import queries
from accounting.queries import Gas, Owner, Returned, Row, Sale
from accounting.rules import deferred, divided, kept_net, rounded
from credits.lots import PAID_SOURCES, Lot, Lots
from credits.models import EntrySource

WEI = 10**18
# Sources for gas that no lot paid for.
DEBT, NOT_CHARGED, FUNDING = "DEBT", "NOT_CHARGED", "FUNDING"
# The owner of amounts that belong to no account.
NO_OWNER = Owner(None)
# The key of a total: a name, and its kind, source or currency.
Key = tuple[str, ...]
# An owner, the source of credits, and a currency.
PersonKey = tuple[Owner, str, str]
SourceKey = tuple[str, str]
_Key = TypeVar("_Key")


@dataclass
class Figures:
    """
    Totals at the beginning and at the end, and the gas in between.

    `gas` is in wei by owner and day; `people` has each person's revenue and used credits.
    """

    opening: Counter[Key] = field(default_factory=Counter)
    closing: Counter[Key] = field(default_factory=Counter)
    gas: Counter[tuple[PersonKey, date]] = field(default_factory=Counter)
    people: dict[PersonKey, Counter[str]] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def moved(self, *key: str) -> int:
        return self.closing[key] - self.opening[key]

    def names(self, name: str) -> list[Key]:
        """Return the keys of this name at either time, in order."""
        return sorted({key for key in (*self.opening, *self.closing) if key[0] == name})


def base_currency() -> str:
    """Return the currency in which to show costs that no collected money paid for."""
    return settings.BILLING_CURRENCIES[0]


def kind_of(source: str) -> str:
    return "paid" if source in PAID_SOURCES else "given"


def figures(*, since: datetime, until: datetime) -> Figures:
    """Compute the figures from `since` until before `until`."""
    sales = queries.sales(until=until)
    returned = (queries.returned(until=since), queries.returned(until=until))
    erased = (queries.erased_users(until=since), queries.erased_users(until=until))
    gas: dict[int, list[Gas]] = {}
    for paid in queries.gas_of_calls(since=since, until=until):
        gas.setdefault(paid.account_id, []).append(paid)
    result = Figures()
    for owner, rows in queries.entries_by_account(until=until):
        place = queries.first_from(rows, since)
        lots = Lots(row.posting for row in rows[:place])
        opening = _totals(lots, sales, returned[0], is_erased=owner.user_id in erased[0])
        for row in rows[place:]:
            lots.post(row.posting)
        closing = _totals(lots, sales, returned[1], is_erased=owner.user_id in erased[1])
        result.opening.update(opening)
        result.closing.update(closing)
        _count_entries(result, rows, place)
        _compare(result, lots, rows)
        _add_person(result, owner, opening, closing)
        _add_gas(result, lots, rows, sales, gas.pop(rows[0].account_id, []) if rows else [])
    for left in gas.values():
        _add_gas(result, Lots(), [], sales, left)
    for day, wei in queries.gas_of_funding(since=since, until=until).items():
        result.gas[(NO_OWNER, FUNDING, base_currency()), day] += wei
    return result


def _totals(
    lots: Lots, sales: Mapping[int, Sale], returned: Mapping[int, Returned], *, is_erased: bool
) -> Counter[Key]:
    """
    Return the totals of one account. `sales` has the sale of each paid lot, by the entry that opened the lot.

    The money for unused credits of an erased user counts as breakage: these credits will never be used, nor will the
    debt be paid unless another account of the profile takes it over.
    """
    totals: Counter[Key] = Counter()
    for source, owed in lots.debt_by_source().items():
        totals["debt", source] += owed
        totals["erased", "debt"] += owed if is_erased else 0
    for lot in lots:
        kind, (source, currency) = kind_of(lot.source), _source_of(lot, sales)
        totals["granted", kind] += lot.granted
        totals["left", kind] += lot.remaining
        totals["erased", kind] += lot.remaining if is_erased else 0
        for taken_by, taken in lot.taken.items():
            totals["taken", kind, taken_by] += taken
        totals["used", source, currency] += lot.taken[EntrySource.RELAY_TRANSACTION]
        if sale := sales.get(lot.entry_id):
            kept = kept_net(sale.money, returned.get(sale.payout_id, Returned(0, 0)).total)
            owed = deferred(lot, kept)
            totals["collected", currency] += sale.money.net_minor
            totals["returned", currency] += sale.money.net_minor - kept
            totals["breakage" if is_erased else "deferred", currency] += owed
            totals["revenue", source, currency] += kept - owed
    return totals


def _source_of(lot: Lot, sales: Mapping[int, Sale]) -> SourceKey:
    """Return the source and currency of a lot."""
    sale = sales.get(lot.entry_id)
    return lot.source, sale.money.currency if sale else base_currency()


def _count_entries(result: Figures, rows: Iterable[Row], place: int) -> None:
    for number, row in enumerate(rows):
        result.closing["entries", row.posting.source] += row.posting.amount
        if number < place:
            result.opening["entries", row.posting.source] += row.posting.amount


def _compare(result: Figures, lots: Lots, rows: list[Row]) -> None:
    balance = lots.given + lots.paid - lots.debt
    if rows and rows[-1].balance_after != balance:
        result.differences.append(
            f"Account {rows[-1].account_id}: its lots hold {balance:,} credits, the ledger {rows[-1].balance_after:,}."
        )


def _add_person(result: Figures, owner: Owner, before: Counter[Key], after: Counter[Key]) -> None:
    for key in {*before, *after}:
        if (moved := after[key] - before[key]) and key[0] in {"revenue", "used"}:
            name, source, currency = key
            result.people.setdefault((owner, source, currency), Counter())[name] += moved


def _add_gas(result: Figures, lots: Lots, rows: list[Row], sales: Mapping[int, Sale], gas: list[Gas]) -> None:
    """Divide the gas of each call among the lots from which its charge took credits."""
    charges = {row.entry_id for row in gas}
    keys = (
        {row.posting.entry_id: row.posting.key for row in rows if row.posting.entry_id in charges}
        if gas
        else {}
    )
    for row in gas:
        use = lots.use(keys[row.entry_id]) if row.entry_id in keys else None
        weights: Counter[SourceKey] = Counter()
        for lot, taken in use.parts.items() if use else ():
            weights[_source_of(lot, sales)] += taken
        if use is None or use.debt:
            weights[DEBT if use else NOT_CHARGED, base_currency()] += use.debt if use else 1
        for (source, currency), wei in divided(row.wei, weights).items():
            result.gas[(row.owner, source, currency), row.day] += wei


@dataclass(frozen=True)
class GasMoney:
    """
    The cost of gas in minor units, by source, by day and by owner. Each adds up to the same sum per currency, and the
    owners of a source add up to that source's sum.

    `missing` has the days and currencies without a rate.
    """

    by_source: dict[SourceKey, int] = field(default_factory=dict)
    by_day: dict[tuple[date, str], int] = field(default_factory=dict)
    by_person: dict[PersonKey, int] = field(default_factory=dict)
    missing: list[tuple[date, str]] = field(default_factory=list)


def gas_money(figures: Figures, *, rates: Mapping[tuple[date, str], object]) -> GasMoney:
    """Value the gas at the rates of its days, rounded once for each currency."""
    prices = {key: Fraction(str(price)) * 100 / WEI for key, price in rates.items()}
    result = GasMoney()
    missing: set[tuple[date, str]] = set()
    days: dict[str, dict[tuple[date, str], Fraction]] = {}
    people: dict[SourceKey, dict[PersonKey, Fraction]] = {}
    for (person, day), wei in figures.gas.items():
        _, source, currency = person
        if (day, currency) not in prices:
            missing.add((day, currency))
        worth = prices.get((day, currency), Fraction(0)) * wei
        _add(days.setdefault(currency, {}), (day, currency), worth)
        _add(people.setdefault((source, currency), {}), person, worth)
    for currency, own in days.items():
        total = rounded(sum(own.values(), Fraction(0)))
        result.by_day.update(divided(total, own))
        sources = {
            key: sum(parts.values(), Fraction(0)) for key, parts in people.items() if key[1] == currency
        }
        result.by_source.update(divided(total, sources))
    for source_key, parts in people.items():
        result.by_person.update(divided(result.by_source[source_key], parts))
    result.missing.extend(sorted(missing))
    return result


def _add(sums: dict[_Key, Fraction], key: _Key, value: Fraction) -> None:
    sums[key] = sums.get(key, Fraction(0)) + value
