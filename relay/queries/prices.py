"""
The price of a credit on each chain that is in force now, and whether it can be used.

A price on a further chain has a greatest age, and a margin around the value of the price at home by the recorded rates
of both coins. Rates belong to accounting, which registers where to read them.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gateway.chain.config import chains, get_chain, home
from gateway.chain.types import Chain
from gateway.common import clock
from relay.models import CreditPrice
from relay.rules import Priced, PriceUse, RecordedRate, deviation, price_use

# How long a process may use a price that another has found to be outdated.
_REREAD_SECONDS = 5.0
_Rates = Callable[[], Iterable[RecordedRate]]
_sources: list[_Rates] = []


def register_rates(source: _Rates) -> None:
    """Register the function that returns the newest rate of each coin in each currency."""
    _sources.append(source)


def current_price() -> CreditPrice:
    """Return the price of the current chain."""
    chain = get_chain()
    newest = CreditPrice.objects.filter(chain_id=chain.id).order_by("-valid_from").first()
    return newest or _first(chain)


def current_prices() -> dict[int, CreditPrice]:
    """Return the price of every chain of the settings, by the chain's id, in one statement."""
    served = {chain.id: chain for chain in chains()}
    newest_first = CreditPrice.objects.filter(chain_id__in=served).order_by("chain_id", "-valid_from")
    stored = {price.chain_id: price for price in newest_first.distinct("chain_id")}
    return {chain_id: stored.get(chain_id) or _first(chain) for chain_id, chain in served.items()}


def recorded_rates() -> list[RecordedRate]:
    """Return the newest rate of each coin in each currency."""
    return [rate for source in _sources for rate in source()]


class PriceState(NamedTuple):
    """A chain's price, and how much of its limits it has used."""

    price: CreditPrice
    use: PriceUse


def price_states() -> dict[int, PriceState]:
    """Return the state of the price of each further chain, by the chain's id. Without any, nothing is read."""
    _, *further = chains()
    if not further:
        return {}
    prices, rates, now = current_prices(), recorded_rates(), clock.now()
    at_home = Priced(prices[home().id].credit_wei, home().currency)
    return {
        chain.id: PriceState(
            price := prices[chain.id],
            price_use(
                chain.price_limits,
                age=now - price.valid_from,
                deviation=deviation(Priced(price.credit_wei, chain.currency), at_home, rates),
            ),
        )
        for chain in further
    }


class PriceWatch:
    """The states of the prices of further chains, which a process reads again after some seconds."""

    def __init__(self) -> None:
        self._states: Mapping[int, PriceState] = {}
        self._read_at = 0.0

    def use_of(self, chain: Chain) -> PriceUse:
        """Return how much of its limits the chain's price has used. For home, nothing is read."""
        if chain.price_limits is None:
            return PriceUse()
        states = self._states
        if chain.id not in states or time.monotonic() - self._read_at > _REREAD_SECONDS:
            states = price_states()
            self._states, self._read_at = states, time.monotonic()
        return states[chain.id].use

    def forget(self) -> None:
        """Read the states again at the next call."""
        self._states = {}


watch = PriceWatch()


def _first(chain: Chain) -> CreditPrice:
    """Return the price that the relay worker will store for a chain that it has not seen yet."""
    return CreditPrice(
        chain_id=chain.id, credit_wei=chain.first_credit_wei, valid_from=clock.now(), is_first=True
    )
