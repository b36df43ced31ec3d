"""
The gas limit of a relay call: the learned limit of similar calls, which the node tries again, or an estimate.

An estimate is the most expensive node call. Its limit is therefore remembered for similar calls: those of the same
profile to the same function of the same target, with a payload of the same size. The node executes the next such call
at exactly that limit and at the highest one. If both executions have the same effects, the limit suffices. A new
estimate is requested only if they differ, or if the limit is far above the gas used.
"""

import threading
import time
from dataclasses import replace
from typing import NamedTuple

from gateway.chain.client import get_chain_client
from gateway.chain.contracts import EXECUTE, refusal_from_revert
from gateway.chain.errors import CallReverted, RelayNonceRefused, answer_too_large
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import RelayQuery, Trial
from relay.pricing import gas_limit_for

# A remembered limit may be at most this multiple of the gas used, because the hold grows with it.
MOST_TIMES_USED = 2
_KEPT_SECONDS = 600.0
# Extra gas of a channel's first call, which sets its nonce from zero; a follower is never the first call.
FIRST_OF_CHANNEL_GAS = 17_400
# The number of remembered limits, for all profiles together. A call whose limit was dropped is estimated again.
MOST_KEPT = 50_000
# Each level of nested calls keeps back a 64th of the gas (EIP-150). A call that leaves less than this part of its limit
# (1/10) has run out of gas.
_SPARE_SHARE = 10
_MOST_RAISES, _UNLIMITED = 2, 2**63
# A transaction is refunded at most a fifth of its gas (EIP-3529), but its limit must cover the gas before the refund.
_GAS_BEFORE_REFUND, _GAS_AFTER_REFUND = 5, 4
# The least gas that the key manager uses before the profile executes the payload.
_RELAYING_GAS = 80_000
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
    Return the gas of a call that is next in its channel, or None if the node's trial is inconclusive.

    `maximum` is the highest gas limit that may be signed; the result is above it if the call does not fit. Both hold
    for the functions below as well.

    Raises:
        CallReverted: the call reverts, or needs more gas than `query.gas_cap`.
        AnswerTooLarge: the contracts return more data than the service reads.
    """
    if trial.is_oversized:
        raise answer_too_large()
    if query.gas_limit is not None:
        return _of_execution(call, query, trial)
    if trial.gas_limit is not None:
        gas = Gas(gas_limit_for(estimate=trial.gas_limit, maximum=maximum), trial.gas_limit)
        return _learn(query.profile, call, gas) if _has_room(gas, trial) else None
    if _was_tried_too_early(trial):
        return None
    raise CallReverted(trial.revert or b"")


def _has_room(gas: Gas, trial: Trial) -> bool:
    """
    Return whether the limit also has the full margin above the gas that the call uses when executed at the cap.

    If so, the limit needs no trial of its own: only a large refund could hide an inner call that runs out of gas. The
    next similar call is compared at this limit.
    """
    used = trial.gas_used_at_cap
    return used is None or gas.limit >= gas_limit_for(estimate=used, maximum=_UNLIMITED)


def of_estimate(*, call: RelayCall, query: RelayQuery, trial: Trial, maximum: int) -> Gas:
    """
    Return the gas of a call that is next in its channel, from the trial's estimate or a new one of the node.

    Raises:
        CallReverted: the call reverts, or needs more gas than `query.gas_cap`.
        NodeUnavailable: no node answered.
    """
    estimate = trial.gas_limit if query.gas_limit is None else None
    if estimate is None:
        estimate = get_chain_client().simulate_relay_call(
            sender=query.sender,
            key_manager=query.key_manager,
            calldata=query.calldata,
            gas_cap=query.gas_cap,
        )
    return _learn(query.profile, call, _compared(query, estimate=estimate, maximum=maximum))


def _compared(query: RelayQuery, *, estimate: int, maximum: int, spare: int = 0) -> Gas:
    """
    Return the gas for an estimate, with a limit at which the call has the same effects as at the maximum.

    An estimate is the lowest limit that the outermost call survives. A contract may catch that an inner call ran out
    of gas, so its effect would be missing. The node executes the call at the limit and at the maximum. If the effects
    differ, the limit is raised, at most twice, and is then the maximum; contracts that read their gas always differ. A
    node that cannot simulate compares nothing, so only the margin protects. `spare` is the gas of the limit that the
    simulated call does not have.

    Raises:
        CallReverted: the call now reverts, even at the maximum.
        NodeUnavailable: no node answered.
    """
    gas = Gas(gas_limit_for(estimate=estimate, maximum=maximum), estimate)
    for _ in range(1 + _MOST_RAISES):
        if gas.limit >= maximum:
            return gas
        limit = max(estimate, gas.limit - spare)
        (state,) = get_chain_client().read_relay_states([replace(query, gas_limit=limit, gas_cap=maximum)])
        trial = state.trial
        if trial.agrees is not False:
            if trial.revert is not None and not _was_tried_too_early(trial):
                raise CallReverted(trial.revert)
            return gas
        used = trial.gas_used_at_cap or estimate
        needed = gas_limit_for(estimate=used * _GAS_BEFORE_REFUND // _GAS_AFTER_REFUND, maximum=maximum)
        gas = Gas(min(maximum, max(gas.limit * 3 // 2, needed)), used)
    return Gas(maximum, gas.expected)


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
    inner = replace(query, sender=query.key_manager, key_manager=query.profile, calldata=call.payload)
    return _compared(inner, estimate=estimate, maximum=maximum, spare=_RELAYING_GAS)


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
        least = gas_limit_for(estimate=expected, maximum=maximum)
        gas = Gas(max(least, min(gas.limit + FIRST_OF_CHANNEL_GAS, maximum)), expected)
    learned = _learned.get(_kind_of(query.profile, call))
    # The gas used by similar calls is a better estimate than the sum of the parts, but proves nothing for this call.
    return Gas(max(gas.limit, learned.gas.limit), learned.gas.expected) if learned else gas


def shortage(*, call: RelayCall, query: RelayQuery, is_next: bool) -> int | None:
    """
    Return how much gas a call needs that reverts within `query.gas_cap`; None if gas is not the reason.

    A contract that runs out of gas often reverts without an error that shows it. The node therefore executes the call
    once more, at twice the cap. If the call uses up that as well, twice the cap is returned.

    Raises:
        NodeUnavailable: no node answered.
    """
    limit = 2 * query.gas_cap
    probe = replace(query, gas_limit=limit)
    if not (is_next and query.calldata):
        # Execute only the key manager's call to the profile, which needs neither signature nor nonce.
        probe = replace(probe, sender=query.key_manager, key_manager=query.profile, calldata=call.payload)
    (state,) = get_chain_client().read_relay_states([probe])
    trial = state.trial
    if trial.revert is None:
        return max(trial.gas_used or 0, query.gas_cap + 1)
    return limit if (trial.gas_used or 0) >= limit - limit // _SPARE_SHARE else None


def _was_tried_too_early(trial: Trial) -> bool:
    """Return whether a new block changed the relay nonce between its read and the trial."""
    return isinstance(refusal_from_revert(trial.revert or b""), RelayNonceRefused)


def _of_execution(call: RelayCall, query: RelayQuery, trial: Trial) -> Gas | None:
    """Return the gas of a call that the node executed at a learned limit, or None if that limit does not fit."""
    learned = _learned.get(_kind_of(query.profile, call))
    if trial.revert is not None or trial.gas_limit is None:
        return None
    if trial.agrees is False:
        return None
    used = trial.gas_used or (learned.gas.expected if learned else 0)
    return Gas(trial.gas_limit, used) if used and trial.gas_limit <= MOST_TIMES_USED * used else None


def _kind_of(profile: str, call: RelayCall) -> _Kind:
    """Return the key under which calls that use about the same gas are remembered."""
    payload = call.payload
    target = payload[_TARGET] + payload[_INNER] if payload.startswith(EXECUTE) else b""
    return profile, payload[:4] + target, len(payload) // _WORD


def _learn(profile: str, call: RelayCall, gas: Gas) -> Gas:
    kind = _kind_of(profile, call)
    with _lock:
        if len(_learned) >= MOST_KEPT:
            # A dictionary keeps insertion order, so the oldest limits come first.
            for oldest in list(_learned)[: MOST_KEPT // 10]:
                del _learned[oldest]
        _learned.pop(kind, None)
        _learned[kind] = _Learned(gas, time.monotonic() + _KEPT_SECONDS)
    return gas
