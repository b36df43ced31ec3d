"""
Reads from the newest block whether a profile holds a token or has a follow (LSP-26).

Responses are cached for some seconds, so a profile that has just received its token may have to wait that long. A
bulkhead and a circuit breaker limit how many web threads wait for a stalled node.
"""

from functools import cache

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.confirmation import confirmed
from gateway.chain.contracts import (
    FOLLOWER_SYSTEM,
    decode_number,
    encode_balance_of,
    encode_is_following,
)
from gateway.chain.errors import NodeUnavailable
from gateway.common.guards import CircuitOpen, Guard
from sponsors.rules.policies import Holding, OutsideResponse, Profiles
from sponsors.services.recent import Recent

_PLACES, _SECONDS = 4, 10.0
_recent: Recent[OutsideResponse] = Recent(seconds=_SECONDS)


@cache
def _guard_of(_chain_id: int) -> Guard:
    return Guard(places=_PLACES)


def read(holding: Holding, *, profile: str) -> OutsideResponse | None:
    """Return whether the profile fulfils the condition at the newest block; None if no node responds."""
    chain_id = get_chain().id
    question, guard = (chain_id, holding, profile), _guard_of(chain_id)
    known = _recent.get(question)
    if known is not None:
        return known
    try:
        with guard.place():
            try:
                response = OutsideResponse(
                    confirmed(lambda: _holds(holding, profile), refuses=lambda holds: not holds)
                )
            except NodeUnavailable:
                guard.failed()
                raise
    except (CircuitOpen, NodeUnavailable):
        return None
    _recent.keep(question, response)
    return response


def _holds(holding: Holding, profile: str) -> bool:
    client, other = get_chain_client(), holding.counterpart
    if holding.rule is Profiles.HOLDING:
        returned = client.read_view(contract=other, calldata=encode_balance_of(holder=profile))
        return (decode_number(returned) or 0) >= holding.minimum
    follower, followed = (profile, other) if holding.rule is Profiles.FOLLOWER else (other, profile)
    asked = encode_is_following(follower=follower, followed=followed)
    return decode_number(client.read_view(contract=FOLLOWER_SYSTEM, calldata=asked)) == 1
