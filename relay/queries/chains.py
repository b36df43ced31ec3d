"""The state of each chain of the service, as this process sees it; no node is queried."""

from enum import StrEnum

from gateway.chain.client import get_chain_client
from gateway.chain.config import chains, on_chain
from gateway.chain.types import Chain
from gateway.staff.pauses import is_paused
from relay.queries.calls import RELAY
from relay.queries.prices import watch


class ChainState(StrEnum):
    """
    Whether a chain takes calls.

    It is `paused` by the operator, or because its price of a credit is outdated; it is `away` if no node responds.
    """

    ACCEPTING = "accepting"
    PAUSED = "paused"
    AWAY = "away"


def chain_states() -> list[tuple[Chain, ChainState]]:
    """Return each chain with its state, home first."""
    is_relay_paused = is_paused(RELAY)
    return [(chain, _state_of(chain, is_relay_paused=is_relay_paused)) for chain in chains()]


def _state_of(chain: Chain, *, is_relay_paused: bool) -> ChainState:
    if is_relay_paused or not chain.takes_calls or not watch.use_of(chain).is_within:
        return ChainState.PAUSED
    with on_chain(chain.id):
        is_away = all(node.fault for node in get_chain_client().nodes())
    return ChainState.AWAY if is_away else ChainState.ACCEPTING
