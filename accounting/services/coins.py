"""
The costs of a month by coin: those of home as in the table of gas, those of further chains and their value.

Costs on further chains count in the first of `BILLING_CURRENCIES`, at the rates of their days, rounded once for each
coin. The sums are compared with what the receipts of each chain's relayers add up to.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

from accounting import queries
from accounting.rules import rounded
from accounting.services.figures import WEI, Figures, GasMoney, base_currency
from accounting.services.sheets import COUNT, CREDITS, MONEY, TEXT, Rows, Sheet
from accounting.services.sheets import WEI as GAS
from gateway.chain.config import chain_of, home

_MOST_DAYS_NAMED = 5
Rates = Mapping[tuple[date, str, str], Decimal]


@dataclass
class Coins:
    """
    The costs by coin and currency, in wei and in minor units, and what relayers spent, by coin.

    `missing` has the days on which a further coin was spent and had no rate.
    """

    wei: Counter[tuple[str, str]] = field(default_factory=Counter)
    cost: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    credits: Counter[str] = field(default_factory=Counter)
    charged_wei: Counter[str] = field(default_factory=Counter)
    relayers_wei: Counter[str] = field(default_factory=Counter)
    fees_wei: Counter[str] = field(default_factory=Counter)
    missing: list[tuple[date, str]] = field(default_factory=list)

    def difference(self, coin: str) -> int:
        """Return what relayers and treasuries spent in this coin beside the costs of the month, in wei."""
        stated = sum(wei for (own, _), wei in self.wei.items() if own == coin)
        return self.relayers_wei[coin] + self.fees_wei[coin] - stated

    @property
    def coins(self) -> list[str]:
        """All coins, that of home first."""
        found = {coin for coin, _ in self.wei} | set(self.relayers_wei) | set(self.fees_wei)
        return sorted(found, key=lambda coin: (coin != home().currency, coin))


def coins_of(figures: Figures, money: GasMoney, *, rates: Rates, since: datetime, until: datetime) -> Coins:
    """Return the costs from `since` until before `until`; those of home are the gas of the figures."""
    result, further = Coins(), Counter[tuple[str, date]]()
    for ((_, _, currency), _), wei in figures.gas.items():
        result.wei[home().currency, currency] += wei
    for (_, currency), minor in money.by_day.items():
        result.cost[home().currency, currency] += minor
    for spent in queries.spent_on_chains(since=since, until=until):
        coin = _coin_of(spent.chain_id)
        result.calls[coin] += spent.calls
        result.credits[coin] += spent.credits
        result.charged_wei[coin] += spent.charged_wei
        if spent.chain_id != home().id:
            further[coin, spent.day] += spent.wei
    for (chain_id, day), wei in queries.fees_of_chains(since=since, until=until).items():
        result.fees_wei[_coin_of(chain_id)] += wei
        if chain_id != home().id:
            further[_coin_of(chain_id), day] += wei
    for chain_id, wei in queries.spent_by_relayers(since=since, until=until).items():
        result.relayers_wei[_coin_of(chain_id)] += wei
    _value(result, further, rates)
    return result


def _value(result: Coins, further: Counter[tuple[str, date]], rates: Rates) -> None:
    worth: dict[str, Fraction] = {}
    for (coin, day), wei in sorted(further.items()):
        result.wei[coin, base_currency()] += wei
        price = rates.get((day, coin, base_currency()))
        if price is None:
            result.missing.append((day, coin))
        worth[coin] = worth.get(coin, Fraction(0)) + Fraction(price or 0) * 100 / WEI * wei
    for coin, value in worth.items():
        result.cost[coin, base_currency()] += rounded(value)


def _coin_of(chain_id: int) -> str:
    return chain_of(chain_id).currency


def coins_sheet(coins: Coins) -> Sheet:
    """Return the costs by coin, and by the currency in which they count."""
    order = {coin: place for place, coin in enumerate(coins.coins)}
    rows: Rows = [
        [coin, currency, coins.wei[coin, currency], coins.cost[coin, currency]]
        for coin, currency in sorted(coins.wei, key=lambda key: (order[key[0]], key[1]))
    ]
    return Sheet("coins", [("coin", TEXT), ("currency", TEXT), ("gas", GAS), ("cost", MONEY)], rows)


def relayers_sheet(coins: Coins) -> Sheet:
    """Return what relayers spent by coin, and what was charged for it; the last column should be 0."""
    rows: Rows = [
        [
            coin,
            coins.calls[coin],
            coins.credits[coin],
            coins.charged_wei[coin],
            coins.relayers_wei[coin],
            coins.fees_wei[coin],
            coins.difference(coin),
        ]
        for coin in coins.coins
    ]
    amounts = ("charged, at the calls' prices", "spent by relayers", "transfers to relayers", "not in coins")
    heads = [("coin", TEXT), ("transactions", COUNT), ("credits charged", CREDITS)]
    return Sheet("relayers", [*heads, *((title, GAS) for title in amounts)], rows)


def problems_of(coins: Coins) -> Iterator[str]:
    """Yield the reasons why the month cannot be closed, as sentences."""
    if coins.missing:
        named = ", ".join(f"{coin} on {day}" for day, coin in coins.missing[:_MOST_DAYS_NAMED])
        more = len(coins.missing) - _MOST_DAYS_NAMED
        others = f" and {more} more days" if more > 0 else ""
        yield f"Rates of further coins in {base_currency().upper()} are missing: {named}{others}."
    for coin in coins.coins:
        if wei := coins.difference(coin):
            yield f"Relayers spent {wei:,} wei of {coin} that the table Coins does not have."
