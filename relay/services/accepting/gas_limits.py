"""
The gas limit of a relay call: a learned limit that the node tries again, or an estimate.

An estimate is the most expensive node call. Its limit is therefore remembered for similar calls: those of the same
profile to the same target. The node executes the next such call at exactly that limit, which proves that the limit
suffices. A new estimate is requested only where it does not, or where it is far above the gas used.
"""

import threading
import time
from dataclasses import replace
from typing import NamedTuple

from gateway.chain.client import get_chain_client
from gateway.chain.contracts import EXECUTE, refusal_from_revert
from gateway.chain.errors import CallReverted, RelayNonceRefused
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import RelayQuery, Trial
from relay.pricing import gas_limit_for

# A remembered limit may be at most this multiple of the gas used, because the hold grows with it.
MOST_TIMES_USED = 2
_KEPT_SECONDS = 600.0
# Extra gas of the first call of a channel; followers never are the first.
FIRST_OF_CHANNEL_GAS = 17_400
# For all profiles together. A dropped limit is estimated again.
MOST_KEPT = 50_000
# A call within calls leaves up to a 64th of the gas at each level (EIP-150). One that leaves less than this share of
# its limit has run out of gas.
_SPARE_SHARE = 10
_WORD = 32
# In `execute(operation, target, value, data)`: the target, and the selector called there.
_TARGET, _INNER = slice(4 + _WORD, 4 + 2 * _WORD), slice(4 + 5 * _WORD, 8 + 5 * _WORD)


class Gas(NamedTuple):
    """The gas limit to sign, and the gas that the call is expected to use."""

    limit: int
    expected: int


class _Learned(NamedTuple):
    gas: Gas
    valid_until: float


_Kind = tuple[str, bytes, int]
_learned: dict[_Kind, _Learned] = {}
_lock = threading.Lock()


def learned_limit(*, profile: str, call: RelayCall) -> int | None:
    """Return the limit learned for similar calls, or None."""
    learned = _learned.get(_kind_of(profile, call))
    return learned.gas.limit if learned and time.monotonic() < learned.valid_until else None


def of_trial(*, call: RelayCall, query: RelayQuery, trial: Trial, maximum: int) -> Gas | None:
    """
    Return the gas of a call that is next in its channel, or None where the node's trial is inconclusive.

    `maximum` is the highest gas limit that may be signed; the result is above it where the call does not fit. So it
    is in the functions below.

    Raises:
        CallReverted: the call reverts, or needs more gas than `query.gas_cap`.
    """
    if query.gas_limit is not None:
        return _of_execution(call, query, trial)
    if trial.gas_limit is not None:
        return _learn(query.profile, call, estimate=trial.gas_limit, maximum=maximum)
    if _was_tried_too_early(trial):
        return None
    raise CallReverted(trial.revert or b"")


def of_estimate(*, call: RelayCall, query: RelayQuery, maximum: int) -> Gas:
    """
    Return the gas of a call that is next in its channel, from a new estimate of the node.

    Raises:
        CallReverted: the call reverts, or needs more gas than `query.gas_cap`.
        NodeUnavailable: no node answered.
    """
    estimate = get_chain_client().simulate_relay_call(
        sender=query.sender,
        key_manager=query.key_manager,
        calldata=query.calldata,
        gas_cap=query.gas_cap,
    )
    return _learn(query.profile, call, estimate=estimate, maximum=maximum)


def of_follower(*, call: RelayCall, query: RelayQuery, maximum: int) -> Gas:
    """
    Return the gas of a call whose nonce the chain does not expect yet; the node can only try its parts.

    Raises:
        CallReverted: the controller may not make the call, or the payload reverts.
        NodeUnavailable: no node answered.
    """
    estimate = get_chain_client().simulate_follower(
        key_manager=query.key_manager,
        profile=query.profile,
        controller=query.controller,
        payload=call.payload,
        gas_cap=query.gas_cap,
    )
    return Gas(gas_limit_for(estimate=estimate, maximum=maximum), estimate)


def before_signing(*, call: RelayCall, query: RelayQuery, maximum: int) -> Gas:
    """
    Return the gas of a call that is not signed yet; the node can only try its parts.

    Raises:
        CallReverted: the controller may not make the call, or the payload reverts.
        NodeUnavailable: no node answered.
    """
    gas = of_follower(call=call, query=query, maximum=maximum)
    if call.sequence == 0:
        expected = gas.expected + FIRST_OF_CHANNEL_GAS
        gas = Gas(gas_limit_for(estimate=expected, maximum=maximum), expected)
    learned = _learned.get(_kind_of(query.profile, call))
    # The gas used by similar calls is a better estimate than the sum of the parts, but proves nothing for this call.
    return Gas(max(gas.limit, learned.gas.limit), learned.gas.expected) if learned else gas


def shortage(*, call: RelayCall, query: RelayQuery, is_next: bool) -> int | None:
    """
    Return the gas that a call needs which reverts within `query.gas_cap`; None where gas is not the reason.

    A contract that runs out of gas often reverts without saying so. The node therefore executes the call once more,
    at twice the cap. Where it uses up that as well, twice the cap is returned.

    Raises:
        NodeUnavailable: no node answered.
    """
    limit = 2 * query.gas_cap
    probe = replace(query, gas_limit=limit)
    if not (is_next and query.calldata):
        # Without signature and nonce, as the key manager calls the profile.
        probe = replace(probe, sender=query.key_manager, key_manager=query.profile, calldata=call.payload)
    (state,) = get_chain_client().read_relay_states([probe])
    trial = state.trial
    if trial.revert is None:
        return max(trial.gas_used or 0, query.gas_cap + 1)
    return limit if (trial.gas_used or 0) >= limit - limit // _SPARE_SHARE else None


def _was_tried_too_early(trial: Trial) -> bool:
    """Return whether the trial met another nonce than the one read before it, because a block came in between."""
    return isinstance(refusal_from_revert(trial.revert or b""), RelayNonceRefused)


def _of_execution(call: RelayCall, query: RelayQuery, trial: Trial) -> Gas | None:
    """Return the gas of a call that the node executed at a learned limit, or None if that limit does not fit."""
    learned = _learned.get(_kind_of(query.profile, call))
    if trial.revert is not None or trial.gas_limit is None:
        return None
    used = trial.gas_used or (learned.gas.expected if learned else 0)
    return Gas(trial.gas_limit, used) if used and trial.gas_limit <= MOST_TIMES_USED * used else None


def _kind_of(profile: str, call: RelayCall) -> _Kind:
    """Return the key under which calls that use about the same gas are remembered."""
    payload = call.payload
    target = payload[_TARGET] + payload[_INNER] if payload.startswith(EXECUTE) else b""
    return profile, payload[:4] + target, len(payload) // _WORD


def _learn(profile: str, call: RelayCall, *, estimate: int, maximum: int) -> Gas:
    kind = _kind_of(profile, call)
    gas = Gas(gas_limit_for(estimate=estimate, maximum=maximum), estimate)
    with _lock:
        if len(_learned) >= MOST_KEPT:
            # A dictionary keeps insertion order, so the oldest limits come first.
            for oldest in list(_learned)[: MOST_KEPT // 10]:
                del _learned[oldest]
        _learned.pop(kind, None)
        _learned[kind] = _Learned(gas, time.monotonic() + _KEPT_SECONDS)
    return gas
