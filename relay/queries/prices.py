"""The price of a credit on each chain that is in force now."""

from gateway.chain.config import chains, get_chain
from gateway.chain.types import Chain
from gateway.common import clock
from relay.models import CreditPrice


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


def _first(chain: Chain) -> CreditPrice:
    """Return the price that the relay worker will store for a chain that it has not seen yet."""
    return CreditPrice(
        chain_id=chain.id, credit_wei=chain.first_credit_wei, valid_from=clock.now(), is_first=True
    )
