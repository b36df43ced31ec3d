"""The state of each chain of the service, as this process sees it, and of those removed; no node is queried."""

from collections import Counter
from enum import StrEnum
from typing import NamedTuple

from gateway.chain.client import get_chain_client
from gateway.chain.config import chains, on_chain
from gateway.chain.types import Chain
from gateway.staff.pauses import is_paused
from relay.models import RelayTransaction, UnsignedCall
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


class OpenChain(NamedTuple):
    """A chain that is not in the settings, and how many of its calls have not ended."""

    chain_id: int
    calls: int

    @property
    def fault(self) -> str:
        """A sentence that says what is wrong."""
        return f"Chain {self.chain_id} is not in CHAINS and has calls in progress: {self.calls}."

    @property
    def remedy(self) -> str:
        """A sentence that says what to do."""
        return f"Add the chain again with CHAIN_{self.chain_id}_TAKES_CALLS=False until they have ended."


def removed_chains_with_open_calls() -> list[OpenChain]:
    """Return the chains that are not in the settings and have calls in progress, or waiting for a signature."""
    configured = [chain.id for chain in chains()]
    open_calls: Counter[int] = Counter()
    for rows in (RelayTransaction.objects.in_progress(), UnsignedCall.objects.all()):
        open_calls.update(rows.exclude(chain_id__in=configured).values_list("chain_id", flat=True))
    return [OpenChain(*counted) for counted in sorted(open_calls.items())]
