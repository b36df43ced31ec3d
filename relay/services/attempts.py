"""Signing one more transaction on an account nonce that was given out. The chain takes one of them."""

from datetime import datetime

from gateway.chain.config import get_chain
from gateway.chain.fees import Fees
from gateway.chain.signing import SELF_TRANSFER_GAS, UnsignedTransaction, get_signer
from gateway.common.enqueue import ring_on_commit
from relay.models import Attempt


def store_cancellation(*, newest: Attempt, fees: Fees, now: datetime) -> Attempt:
    """Store a self-transfer of nothing that takes over `newest`'s account nonce. The call's row must be locked."""
    return _take_over(
        newest=newest,
        kind=Attempt.Kind.CANCELLATION,
        to=newest.relayer.address,
        data=b"",
        gas_limit=SELF_TRANSFER_GAS,
        fees=fees,
        now=now,
    )


def store_dearer_call(
    *, newest: Attempt, key_manager: str, calldata: bytes, fees: Fees, now: datetime
) -> Attempt:
    """Store the same call at other fees on `newest`'s account nonce. The call's row must be locked."""
    return _take_over(
        newest=newest,
        kind=Attempt.Kind.CALL,
        to=key_manager,
        data=calldata,
        gas_limit=newest.gas_limit,
        fees=fees,
        now=now,
    )


def _take_over(
    *, newest: Attempt, kind: Attempt.Kind, to: str, data: bytes, gas_limit: int, fees: Fees, now: datetime
) -> Attempt:
    signed = get_signer().sign(
        relayer=newest.relayer.address,
        transaction=UnsignedTransaction(
            chain_id=get_chain().id,
            account_nonce=newest.account_nonce,
            max_priority_fee_per_gas_wei=fees.max_priority_fee_per_gas_wei,
            max_fee_per_gas_wei=fees.max_fee_per_gas_wei,
            gas_limit=gas_limit,
            to=to,
            data=data,
        ),
    )
    slot = Attempt.objects.filter(relayer=newest.relayer, account_nonce=newest.account_nonce)
    slot.filter(status=Attempt.Status.SENT).update(status=Attempt.Status.OUTBID)
    slot.filter(status=Attempt.Status.SIGNED).update(status=Attempt.Status.WITHDRAWN)
    stored = Attempt.objects.create(
        relay_transaction_id=newest.relay_transaction_id,
        relayer=newest.relayer,
        account_nonce=newest.account_nonce,
        sequence=newest.sequence + 1,
        kind=kind,
        transaction_hash=signed.transaction_hash,
        raw=signed.raw,
        gas_limit=gas_limit,
        max_fee_per_gas_wei=fees.max_fee_per_gas_wei,
        max_priority_fee_per_gas_wei=fees.max_priority_fee_per_gas_wei,
        created_at=now,
    )
    ring_on_commit("relay.broadcast")
    return stored
