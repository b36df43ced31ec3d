"""
Accept a relay call: hold its credits, sign it, store it, and only then answer.

The node is asked before the transaction. Inside it nothing leaves the process:
the hold, the account nonce, the signed bytes and the row commit together or not
at all, so an answered hash is a hash that will be broadcast.

The order of calls within one nonce channel.

A key manager executes a channel's nonces strictly one after the other. A call
ahead of the chain is accepted only behind calls of ours that stand, on the same
relayer: then the order of account nonces is the order on chain.
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
from gateway.common.tasks import ring_on_commit
from relay import queries
from relay.errors import ChannelBusy, RelayNonceGap, RelayNonceTaken, RelayPaused
from relay.models import RelayTransaction
from relay.pricing import cost_in_credits
from relay.services import limits, preflight, relayers, statements
from relay.services.preflight import Approval
from rewards.queries import debt_limit_of
from users.models import User


def execute(*, user: User, call: RelayCall, now: datetime, is_signed_in: bool = True) -> str:
    """
    Relay the call for the user's profile and return the transaction's hash.

    A repeat of a call that is in progress or executed returns the same hash. After
    a dead end (`Failed`, `Cancelled`, `Expired`) it is tried anew; by callers without
    a token only as often as `budgets.check_failures` allows.

    Raises:
        DomainError: the call was refused; nothing is stored, held or sent.
    """
    if user.profile_address is None:
        raise ValueError("only the owner of a profile relays")
    call, identity = identify(call=call)
    # A generation that another request begins from here on is this call's as well.
    known = queries.look_up(user=user, identity=identity)
    if known.transaction_hash is not None:
        return known.transaction_hash
    if not is_signed_in:
        limits.check_failures(known=known)
    if known.is_paused:
        raise RelayPaused
    limits.check_dead_ends(user=user, now=now)
    try:
        approval = preflight.approve(
            profile=user.profile_address, call=call, identity=identity, now=int(now.timestamp())
        )
        return _accept_once(user=user, approval=approval, generation=known.generation, now=now)
    except DomainError:
        # An equal request may have been accepted since, which is why this one finds its nonce or credits gone.
        standing = queries.standing_transaction(user=user, identity=identity)
        if standing is None:
            raise
        return standing.transaction_hash


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


def _accept_once(*, user: User, approval: preflight.Approval, generation: int, now: datetime) -> str:
    try:
        return _accept(user=user, approval=approval, generation=generation, now=now)
    except IntegrityError as error:
        if db.violated_constraint(error) != "relaytransaction_standing_nonce":
            raise
        raise RelayNonceTaken(nonce=approval.call.relay_nonce) from error


@transaction.atomic(durable=True)
def _accept(*, user: User, approval: preflight.Approval, generation: int, now: datetime) -> str:
    """
    1. Hold the credits; the hold's key is the identity, so of many equal requests one goes on.
    2. With the account locked, look at the channel: in order, not full, which relayer. Is the user's share used?
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
    sticky = place(approval=approval)
    limits.check_share(user=user)
    slot = relayers.take_slot(
        sticky_relayer_id=sticky,
        worst_cost_wei=approval.gas_limit * approval.fees.max_fee_per_gas_wei,
    )
    signed = _sign(slot=slot, approval=approval)
    _store(user=user, approval=approval, generation=generation, held=held, slot=slot, signed=signed, now=now)
    ring_on_commit("relay.broadcast")
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
    """Write the call and the signed bytes that carry it: both rows or none."""
    params = {
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
    db.only_row(statements.STORE_CALL, params)


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


def place(*, approval: Approval) -> int | None:
    """
    Check the call's place in its channel; return the id of the relayer it must stick to, or None for any.

    Runs inside the accepting transaction after the credit account is locked. All
    calls of a channel belong to one profile and so to one account: its lock makes
    this read final.

    Raises:
        RelayNonceTaken: another call stands on this nonce.
        RelayNonceGap: a nonce before this one has no living call here.
        ChannelBusy: too many calls wait before this one.
    """
    call = approval.call
    standing = _standing(approval)
    if call.relay_nonce in standing:
        raise RelayNonceTaken(nonce=call.relay_nonce)
    for nonce in range(approval.chain_nonce, call.relay_nonce)[: settings.RELAY_MAX_FOLLOWERS + 1]:
        if nonce not in standing or standing[nonce].is_ending:
            raise RelayNonceGap(
                f"Nonce {nonce} of channel {call.channel} has no living call here.", expectedNonce=str(nonce)
            )
    if call.relay_nonce - approval.chain_nonce > settings.RELAY_MAX_FOLLOWERS:
        raise ChannelBusy(
            f"{settings.RELAY_MAX_FOLLOWERS} calls of channel {call.channel} wait already.",
            retry_after=get_chain().block_seconds,
            maximumFollowers=settings.RELAY_MAX_FOLLOWERS,
        )
    return next((row.relayer_id for row in standing.values() if row.is_in_progress), None)


class _Standing(NamedTuple):
    relayer_id: int
    is_in_progress: bool
    is_ending: bool


def _standing(approval: Approval) -> dict[int, _Standing]:
    """Return the living and the executed calls of the channel that matter, by relay nonce."""
    call = approval.call
    params = {
        "key_manager": call.key_manager,
        "controller": approval.identity.controller,
        "channel": call.channel,
        "chain_nonce": approval.chain_nonce,
    }
    rows = db.all_rows(statements.STANDING_OF_CHANNEL, params)
    return {int(nonce): _Standing(*rest) for nonce, *rest in rows}
