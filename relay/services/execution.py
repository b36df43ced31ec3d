"""
Accept a relay call: hold its credits, sign it, store it, and only then answer.

The node is asked before the transaction. Inside it nothing leaves the process:
the hold, the account nonce, the signed bytes and the row commit together or not
at all, so an answered hash is a hash that will be broadcast.
"""

from datetime import datetime

from django.conf import settings
from django.db import IntegrityError, transaction

from credits.queries import debt_limit_of
from credits.services import ledger
from gateway.chain.config import get_chain
from gateway.chain.lsp25 import RelayCall, relay_digest
from gateway.chain.signatures import normalise_signature, recover_address
from gateway.chain.signing import SignedTransaction, UnsignedTransaction, get_signer
from gateway.common import sql
from gateway.common.enqueue import ring_on_commit
from gateway.common.errors import DomainError
from gateway.common.owner import ProfileOwner
from gateway.common.request_ids import request_id
from relay import queries
from relay.errors import RelayNonceTaken, RelayPaused
from relay.models import RelayTransaction
from relay.pricing import cost_in_credits
from relay.services import budgets, channels, preflight, relayers, statements


def execute(*, user: ProfileOwner, call: RelayCall, now: datetime, is_signed_in: bool = True) -> str:
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
        budgets.check_failures(known=known)
    if known.is_paused:
        raise RelayPaused
    budgets.check_dead_ends(user=user, now=now)
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


def _accept_once(*, user: ProfileOwner, approval: preflight.Approval, generation: int, now: datetime) -> str:
    try:
        return _accept(user=user, approval=approval, generation=generation, now=now)
    except IntegrityError as error:
        if sql.violated_constraint(error) != "relaytransaction_standing_nonce":
            raise
        raise RelayNonceTaken(nonce=approval.call.relay_nonce) from error


@transaction.atomic(durable=True)
def _accept(*, user: ProfileOwner, approval: preflight.Approval, generation: int, now: datetime) -> str:
    """
    1. Hold the credits; the hold's key is the identity, so of many equal requests one goes on.
    2. With the account locked, look at the channel: in order, not full, which relayer. Is the user's share used?
    3. Lock that relayer, take its account nonce, sign, store.
    """
    identity = approval.identity
    held = ledger.hold(
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
    sticky = channels.place(approval=approval)
    budgets.check_share(user=user)
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
    user: ProfileOwner,
    approval: preflight.Approval,
    generation: int,
    held: ledger.HoldResult,
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
    sql.only_row(statements.STORE_CALL, params)


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
