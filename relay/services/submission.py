"""
Accept a relay call: hold its credits, sign it, store it, and only then answer.

The node is asked before the transaction. Inside it nothing leaves the process:
the hold, the account nonce, the signed bytes and the row commit together or not
at all, so an answered hash is a hash that will be broadcast.

A key manager executes the nonces of a channel strictly one after the other. So a
call ahead of the chain's nonce is accepted only behind active calls of its channel,
and on their relayer: then the order of account nonces is the order on chain.
"""

from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import IntegrityError, transaction

from credits.services import holds
from gateway.chain.config import get_chain
from gateway.chain.lsp25 import RelayCall, relay_digest
from gateway.chain.signatures import normalise_signature, recover_address
from gateway.chain.signing import SignedTransaction, UnsignedTransaction, get_signer
from gateway.common import db
from gateway.common.errors import DomainError
from gateway.common.logging import request_id
from relay import queries
from relay.errors import ChannelBusy, RelayNonceGap, RelayNonceTaken, RelayPaused
from relay.models import RelayTransaction
from relay.pricing import cost_in_credits
from relay.services import limits, loops, preflight, relayers, statements
from relay.services.preflight import Approval
from rewards.queries import debt_limit_of
from users.models import User


def execute(*, user: User, call: RelayCall, now: datetime, is_signed_in: bool = True) -> str:
    """
    Relay the call for the user's profile and return the transaction's hash.

    A repeat of a call that is in progress or executed returns the same hash. A call that
    ended as `Failed`, `Cancelled` or `Expired` is tried anew; for callers without a token
    only as often as `limits.check_failures` allows.

    Raises:
        DomainError: the call was refused; nothing is stored, held or sent.
    """
    if user.profile_address is None:
        raise ValueError("only the owner of a profile relays")
    call, identity = identify(call=call)
    # An equal request that is accepted from here on has the same generation, and so the same hold.
    history = queries.call_history(user=user, identity=identity)
    if history.transaction_hash is not None:
        return history.transaction_hash
    if not is_signed_in:
        limits.check_failures(history=history)
    if history.is_paused:
        raise RelayPaused
    limits.check_cancelled_calls(user=user, now=now)
    try:
        approval = preflight.approve(
            profile=user.profile_address, call=call, identity=identity, now=int(now.timestamp())
        )
        return _accept(user=user, approval=approval, generation=history.generation, now=now)
    except DomainError:
        # An equal request may have been accepted meanwhile, and have taken this one's nonce or credits.
        accepted = queries.active_transaction(user=user, identity=identity)
        if accepted is None:
            raise
        return accepted.transaction_hash


def identify(*, call: RelayCall) -> tuple[RelayCall, queries.Identity]:
    """
    Return the call with a normalised signature, and its identity.

    Raises:
        UnusableSignature: no address can be recovered from the signature.
    """
    signature = normalise_signature(call.signature)
    digest = relay_digest(
        chain_id=get_chain().id,
        key_manager=call.key_manager,
        relay_nonce=call.relay_nonce,
        validity=call.validity,
        payload=call.payload,
    )
    controller = recover_address(digest, signature)
    normalised = RelayCall(call.key_manager, call.payload, signature, call.relay_nonce, call.validity)
    return normalised, queries.Identity("0x" + digest.hex(), controller)


@transaction.atomic(durable=True)
def _accept(*, user: User, approval: preflight.Approval, generation: int, now: datetime) -> str:
    """
    1. Hold the credits. The hold's key is the identity, so of many equal requests only one goes on.
    2. With the account locked, check the channel (in order, not full, which relayer) and the user's share.
    3. Lock that relayer, take its account nonce, sign, store.
    """
    identity = approval.identity
    held = holds.hold(
        user=user,
        credits=cost_in_credits(
            gas=approval.gas_limit,
            price_wei=approval.fees.max_fee_per_gas_wei,
            credit_wei=settings.CREDIT_WEI,
        ),
        key=f"relay:{identity.digest}:{identity.controller}:{generation}",
        debt_limit=debt_limit_of(user=user, now=now),
    )
    if not held.created:
        return RelayTransaction.objects.get(hold_id=held.hold.pk).transaction_hash
    sticky_relayer_id = check_channel(approval=approval)
    limits.check_share(user=user)
    slot = relayers.take_slot(
        sticky_relayer_id=sticky_relayer_id,
        worst_cost_wei=approval.gas_limit * approval.fees.max_fee_per_gas_wei,
    )
    signed = _sign(slot=slot, approval=approval)
    _store(user=user, approval=approval, generation=generation, held=held, slot=slot, signed=signed, now=now)
    loops.notify_signed()
    return signed.transaction_hash


def _store(
    *,
    user: User,
    approval: preflight.Approval,
    generation: int,
    held: holds.HoldResult,
    slot: relayers.Slot,
    signed: SignedTransaction,
    now: datetime,
) -> None:
    """
    Write the call and the signed bytes that carry it: both rows or none.

    Raises:
        RelayNonceTaken: an active call through another account has this nonce.
    """
    params = {
        "chain": get_chain().id,
        "user": user.pk,
        "profile": approval.profile,
        "key_manager": approval.call.key_manager,
        "controller": approval.identity.controller,
        "digest": approval.identity.digest,
        "generation": generation,
        "channel": approval.call.channel,
        "relay_nonce": approval.call.relay_nonce,
        "validity": approval.call.validity,
        "payload": approval.call.payload,
        "signature": approval.call.signature,
        "is_follower": approval.is_follower,
        "relayer": slot.relayer_id,
        "account_nonce": slot.account_nonce,
        "hold": held.hold.pk,
        "transaction_hash": signed.transaction_hash,
        "raw": signed.raw,
        "gas_limit": approval.gas_limit,
        "max_fee_wei": approval.fees.max_fee_per_gas_wei,
        "max_tip_wei": approval.fees.max_priority_fee_per_gas_wei,
        "expected_cost": cost_in_credits(
            gas=approval.gas_estimate,
            price_wei=approval.fees.expected_price_wei,
            credit_wei=settings.CREDIT_WEI,
        ),
        "credits_before": held.balance,
        "request_id": request_id() or "",
        "now": now,
    }
    try:
        db.only_row(statements.STORE_CALL, params)
    except IntegrityError as error:
        if db.violated_constraint(error) != "relaytransaction_active_nonce":
            raise
        raise RelayNonceTaken(nonce=approval.call.relay_nonce) from error


def _sign(*, slot: relayers.Slot, approval: preflight.Approval) -> SignedTransaction:
    return get_signer().sign(
        relayer=slot.relayer,
        transaction=UnsignedTransaction(
            chain_id=get_chain().id,
            account_nonce=slot.account_nonce,
            max_priority_fee_per_gas_wei=approval.fees.max_priority_fee_per_gas_wei,
            max_fee_per_gas_wei=approval.fees.max_fee_per_gas_wei,
            gas_limit=approval.gas_limit,
            to=approval.call.key_manager,
            data=approval.calldata,
        ),
    )


def check_channel(*, approval: Approval) -> int | None:
    """
    Check the call's place in its channel; return the id of the relayer it must go to, or None for any.

    Runs inside the accepting transaction after the credit account is locked. All
    calls of a channel belong to one profile and so to one account: its lock makes
    this read final.

    Raises:
        RelayNonceTaken: another active call has this nonce.
        RelayNonceGap: a nonce before this one has no active call here.
        ChannelBusy: too many calls wait before this one.
    """
    call = approval.call
    active = _active_calls(approval)
    if call.relay_nonce in active:
        raise RelayNonceTaken(nonce=call.relay_nonce)
    for nonce in range(approval.chain_nonce, call.relay_nonce)[: settings.RELAY_MAX_FOLLOWERS + 1]:
        if nonce not in active or active[nonce].is_ending:
            raise RelayNonceGap(
                f"Nonce {nonce} of channel {call.channel} has no living call here.", expectedNonce=str(nonce)
            )
    if call.relay_nonce - approval.chain_nonce > settings.RELAY_MAX_FOLLOWERS:
        raise ChannelBusy(
            f"{settings.RELAY_MAX_FOLLOWERS} calls of channel {call.channel} wait already.",
            retry_after=get_chain().block_seconds,
            maximumFollowers=settings.RELAY_MAX_FOLLOWERS,
        )
    return next((row.relayer_id for row in active.values() if row.is_in_progress), None)


class _ActiveCall(NamedTuple):
    relayer_id: int
    is_in_progress: bool
    is_ending: bool


def _active_calls(approval: Approval) -> dict[int, _ActiveCall]:
    """Return the active calls of the channel, by relay nonce."""
    call = approval.call
    params = {
        "chain": get_chain().id,
        "key_manager": call.key_manager,
        "controller": approval.identity.controller,
        "channel": call.channel,
        "chain_nonce": approval.chain_nonce,
    }
    rows = db.all_rows(statements.ACTIVE_CALLS_OF_CHANNEL, params)
    return {int(nonce): _ActiveCall(*rest) for nonce, *rest in rows}
