"""
The gas limit of a relay call: the learned limit of similar calls, which the node tries again, or an estimate.

An estimate is the most expensive node call. Its limit is therefore remembered for similar calls: those of the same
profile to the same function of the same target, with a payload of the same size. The node executes the next such call
at exactly that limit and at the highest one. If both executions have the same effects, the limit suffices. A new
estimate is requested only if they differ, or if the limit is far above the gas used.

Once a kind of call has had the same effects at both, its calls are executed at the learned limit alone, as long as
enough gas is left. *Why that suffices:* at each level of nested calls, the caller keeps back a 64th of its gas
(EIP-150). A call that ran out of gas `n` levels deep, because the limit was too low, has used up all gas but what its
`n` callers kept: at most `1 - (63/64)**n` of the limit. That holds for calls with a gas limit of their own too: they
depend on ours only if they ask for more than there is, and then they get all that the caller does not keep. So if more
is left than eight callers can keep, no call up to eight levels below the key manager ran out of gas, whatever it would
have cost. If less is left, the call is compared with the highest limit again.

*Not proven:* calls at deeper levels (a wallet's own contracts take four); a contract that reads its gas, but did so to
no effect when its kind was compared (as one that passes on half of it); and, on nodes that do not report the gas before
the refund, a call with a larger refund than the one that was learned from.
"""

import threading
import time
from dataclasses import replace
from typing import NamedTuple

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.contracts import EXECUTE, refusal_from_revert
from gateway.chain.errors import CallReverted, RelayCallNotYetValid, RelayNonceRefused, result_too_large
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import RelayQuery, Trial
from relay.pricing import gas_limit_for
from relay.services.accepting.calls import Gas, SubmittedCall
from signer.transactions import SELF_TRANSFER_GAS

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
# Levels of nested calls, counted from the key manager, on which no call may run out of gas unnoticed.
_LEVELS = 8
# A transaction is refunded at most a fifth of its gas (EIP-3529), but its limit must cover the gas before the refund.
_GAS_BEFORE_REFUND, _GAS_AFTER_REFUND = 5, 4
# The least gas that the key manager uses before the profile executes the payload.
_RELAYING_GAS = 80_000
_WORD = 32
# In `execute(operation, target, value, data)`: the target, and the selector called there.
_TARGET, _INNER = slice(4 + _WORD, 4 + 2 * _WORD), slice(4 + 5 * _WORD, 8 + 5 * _WORD)


class TrialPlan(NamedTuple):
    """The gas limit to try a call at; None to estimate it. `compares` is whether the highest limit is tried too."""

    limit: int | None
    compares: bool


class _Learned(NamedTuple):
    gas: Gas
    valid_until: float
    # The most gas that the call learned from can have been refunded; None if unknown.
    refund: int | None = None
    # Whether such a call had the same effects at the highest limit, and left enough gas at this one.
    is_proven: bool = False


_Kind = tuple[int, str, bytes, int]
_learned: dict[_Kind, _Learned] = {}
_lock = threading.Lock()


def plan_for(*, profile: str, call: RelayCall) -> TrialPlan:
    """Return how to try the call: at the limit learned for similar calls, if there is one."""
    learned = _learned.get(_kind_of(profile, call))
    if learned is None or time.monotonic() >= learned.valid_until:
        return TrialPlan(None, compares=True)
    return TrialPlan(learned.gas.limit, compares=not learned.is_proven)


def of_trial(call: SubmittedCall, *, maximum: int) -> Gas | None:
    """
    Return the gas of a call that is next in its channel, or None if the node's trial is inconclusive.

    `maximum` is the highest gas limit that may be signed; the result is above it if the call does not fit. Both hold
    for the functions below as well.

    Raises:
        CallReverted: the call reverts, or needs more gas than `query.gas_cap`.
        ResultTooLarge: the contracts return more data than the service reads.
    """
    trial = call.state.trial
    if trial.is_oversized:
        raise result_too_large()
    if call.query.gas_limit is not None:
        return _of_execution(call.signed, call.query, trial)
    if trial.gas_limit is not None:
        gas = Gas(gas_limit_for(estimate=trial.gas_limit, maximum=maximum), trial.gas_limit)
        refund = None if trial.gas_used_at_cap is None else trial.gas_limit - trial.gas_used_at_cap
        return _learn(call.query.profile, call.signed, gas, refund) if _has_room(gas, trial) else None
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


def of_estimate(call: SubmittedCall, *, maximum: int) -> Gas:
    """
    Return the gas of a call that is next in its channel, from the trial's estimate or a new one of the node.

    A call that was executed at a learned limit alone, and left too little gas there, is compared first.

    Raises:
        CallReverted: the call reverts, or needs more gas than `query.gas_cap`.
        NodeUnavailable: no node responded.
    """
    query, trial = replace(call.query, compares=True), call.state.trial
    if not call.query.compares and trial.revert is None:
        (state,) = get_chain_client().read_relay_states([query])
        if (gas := _of_execution(call.signed, query, state.trial)) is not None:
            return gas
    estimate = trial.gas_limit if query.gas_limit is None else None
    if estimate is None:
        estimate = get_chain_client().simulate_relay_call(
            sender=query.sender,
            key_manager=query.key_manager,
            calldata=query.calldata,
            gas_cap=query.gas_cap,
        )
    return _learn(query.profile, call.signed, _compared(query, estimate=estimate, maximum=maximum))


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
        NodeUnavailable: no node responded.
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


def of_parts(call: SubmittedCall, *, maximum: int) -> Gas:
    """
    Return the gas of a call that the newest block would refuse for its nonce, its validity or its lack of a signature.

    The node can only try the parts of such a call.

    Raises:
        CallReverted: the controller may not make the call, or the payload reverts.
        NodeUnavailable: no node responded.
    """
    query = call.query
    estimate = get_chain_client().simulate_follower(
        key_manager=query.key_manager,
        profile=query.profile,
        controller=query.controller,
        payload=call.signed.payload,
        gas_cap=query.gas_cap,
    )
    gas = _compared(_inner(call), estimate=estimate, maximum=maximum, spare=_RELAYING_GAS)
    if call.signed.sequence:
        return gas
    expected = gas.expected + FIRST_OF_CHANNEL_GAS
    least = gas_limit_for(estimate=expected, maximum=maximum)
    return Gas(max(least, min(gas.limit + FIRST_OF_CHANNEL_GAS, maximum)), expected)


def before_signing(call: SubmittedCall, *, maximum: int) -> Gas:
    """
    Return the gas of a call that is not signed yet; the node can only try its parts.

    Raises:
        CallReverted: the controller may not make the call, or the payload reverts.
        NodeUnavailable: no node responded.
    """
    gas = of_parts(call, maximum=maximum)
    learned = _learned.get(_kind_of(call.query.profile, call.signed))
    # The gas used by similar calls is a better estimate than the sum of the parts, but proves nothing for this call.
    return Gas(max(gas.limit, learned.gas.limit), learned.gas.expected) if learned else gas


def needed_beyond_cap(call: SubmittedCall, *, is_next: bool) -> tuple[int, bool]:
    """
    Return how much gas a call needs at least that reverts within the gas cap, and whether that much suffices.

    A contract that runs out of gas often reverts without an error that shows it. The node therefore executes the call
    once more, at twice the cap. If the call uses up that as well, it needs more than that.

    Raises:
        CallReverted: gas is not the reason.
        NodeUnavailable: no node responded.
    """
    query = call.query
    limit = 2 * query.gas_cap
    probe = query if is_next and query.calldata else _inner(call)
    (state,) = get_chain_client().read_relay_states([replace(probe, gas_limit=limit)])
    trial = state.trial
    if trial.revert is None:
        return max(trial.gas_used or 0, query.gas_cap + 1), True
    if (trial.gas_used or 0) < limit - limit // _SPARE_SHARE:
        raise CallReverted(trial.revert)
    return limit, False


def _inner(call: SubmittedCall) -> RelayQuery:
    """Return the query that executes only the key manager's call to the profile, without signature and nonce."""
    query = call.query
    return replace(
        query,
        sender=query.key_manager,
        key_manager=query.profile,
        calldata=call.signed.payload,
        compares=True,
    )


def _was_tried_too_early(trial: Trial) -> bool:
    """Return whether a new block changed the relay nonce between its read and the trial."""
    return isinstance(refusal_from_revert(trial.revert or b""), RelayNonceRefused)


def was_tried_before_start(trial: Trial) -> bool:
    """Return whether the newest block refuses the call because its validity has not begun."""
    return isinstance(refusal_from_revert(trial.revert or b""), RelayCallNotYetValid)


def _of_execution(call: RelayCall, query: RelayQuery, trial: Trial) -> Gas | None:
    """Return the gas of a call that the node executed at a learned limit, or None if that limit may not fit."""
    kind = _kind_of(query.profile, call)
    learned = _learned.get(kind)
    if trial.revert is not None or trial.gas_limit is None or trial.agrees is False:
        return None
    used = trial.gas_used or (learned.gas.expected if learned else 0)
    if not used or trial.gas_limit > MOST_TIMES_USED * used:
        return None
    starves_none = _starves_none(trial, learned.refund if learned else None)
    if not query.compares and not starves_none:
        return None
    with _lock:
        if trial.agrees and learned is not None and _learned.get(kind) is learned:
            _learned[kind] = learned._replace(is_proven=starves_none and learned.gas.limit == trial.gas_limit)
    return Gas(trial.gas_limit, used)


def _starves_none(trial: Trial, refund: int | None) -> bool:
    """Return whether the execution left more gas than callers on `_LEVELS` levels can have kept back."""
    if trial.gas_used is None or trial.gas_limit is None:
        return False
    most_used = trial.most_gas_used
    if most_used is None:
        highest_refund = trial.gas_used // (_GAS_BEFORE_REFUND - 1)
        most_used = trial.gas_used + min(highest_refund, highest_refund if refund is None else refund)
    # The gas of the transaction itself is used before the first level.
    kept: int = (trial.gas_limit - SELF_TRANSFER_GAS) * (64**_LEVELS - 63**_LEVELS) // 64**_LEVELS
    return trial.gas_limit - most_used > kept


def _kind_of(profile: str, call: RelayCall) -> _Kind:
    """Return the key under which calls that use about the same gas are remembered."""
    payload = call.payload
    target = payload[_TARGET] + payload[_INNER] if payload.startswith(EXECUTE) else b""
    return get_chain().id, profile, payload[:4] + target, len(payload) // _WORD


def _learn(profile: str, call: RelayCall, gas: Gas, refund: int | None = None) -> Gas:
    kind = _kind_of(profile, call)
    with _lock:
        if len(_learned) >= MOST_KEPT:
            # A dictionary keeps insertion order, so the oldest limits come first.
            for oldest in list(_learned)[: MOST_KEPT // 10]:
                del _learned[oldest]
        _learned.pop(kind, None)
        _learned[kind] = _Learned(gas, time.monotonic() + _KEPT_SECONDS, refund)
    return gas
