"""
Sign another transaction on an account nonce that is in flight, at higher fees. The chain executes one of them.

It replaces an attempt whose fees are too low, or it is the self-transfer that cancels a call.
"""

from dataclasses import replace as replace_fields
from datetime import datetime

from credits.models import CreditHold
from gateway.chain.config import get_chain
from gateway.chain.fees import Fees, FeesTooHigh, bump, quote_fees
from gateway.chain.remote_signing import signed_outside
from gateway.chain.signing import get_signer
from gateway.chain.types import Head
from relay.models import Attempt, GapFiller, Loss, RelayTransaction, TopUp
from relay.services.fleet import losses, tips
from relay.services.sending import loops
from signer.transactions import SELF_TRANSFER_GAS, UnsignedTransaction


def current_fees(*, head: Head) -> Fees:
    """
    Return current fees in wei, with the tip that the nodes require, and at most the cap of the fee policy.

    A cancellation cannot wait for lower prices.
    """
    policy = get_chain().fees
    least_tip_wei = tips.least_tip_wei()
    try:
        fees = quote_fees(
            base_fee_wei=head.base_fee_wei,
            tip_wei=policy.tip_wei,
            least_tip_wei=least_tip_wei,
            floor_wei=policy.floor_wei,
            cap_wei=policy.cap_wei,
        )
    except FeesTooHigh:
        fees = Fees(
            max_fee_per_gas_wei=policy.cap_wei,
            max_priority_fee_per_gas_wei=min(policy.cap_wei, max(policy.tip_wei, least_tip_wei)),
            expected_price_wei=policy.cap_wei,
        )
    return replace_fields(fees, l1=head.l1)


def replacement_fees(*, attempt: Attempt, fees: Fees) -> Fees | None:
    """
    Return `fees`, bumped where needed to replace `attempt` in the nodes' pools; None if that exceeds the cap.

    An attempt that was never sent is in no pool and needs no bump.
    """
    return fees if attempt.first_sent_at is None else bump_fees(signed=attempt, fees=fees)


def higher_fees(*, attempt: Attempt, fees: Fees) -> Fees | None:
    """
    Return fees that replace `attempt`: `fees`, or its own fees plus an eighth; None if they exceed the cap.

    The current fees alone may not suffice: a node may require a larger tip, or may
    already have another transaction on the account nonce.
    """
    replacing = replacement_fees(attempt=attempt, fees=fees)
    if replacing is None or replacing.max_fee_per_gas_wei > attempt.max_fee_per_gas_wei:
        return replacing
    return bump_fees(signed=attempt, fees=fees)


def bump_fees(*, signed: Attempt | GapFiller | TopUp, fees: Fees) -> Fees | None:
    """Return the fees of a signed transaction, bumped, and at least `fees`; None if that exceeds the cap."""
    bumped = bump(
        Fees(signed.max_fee_per_gas_wei, signed.max_priority_fee_per_gas_wei, signed.max_fee_per_gas_wei),
        cap_wei=get_chain().fees.cap_wei,
    )
    if bumped is None:
        return None
    return Fees(
        max(bumped.max_fee_per_gas_wei, fees.max_fee_per_gas_wei),
        max(bumped.max_priority_fee_per_gas_wei, fees.max_priority_fee_per_gas_wei),
        max(bumped.expected_price_wei, fees.expected_price_wei),
        fees.l1,
    )


def store_cancellation(*, call: RelayTransaction, newest: Attempt, fees: Fees, now: datetime) -> bool:
    """
    Store a self-transfer on the account nonce of `newest`. The caller has locked the call's row.

    Returns False if the service has reached its loss limit; the caller retries later.
    """
    cost_wei = fees.highest_cost_wei(gas_limit=SELF_TRANSFER_GAS, data_bytes=0)
    if not _reserve_loss(call=call, kind=Loss.Kind.CANCELLATION, amount_wei=cost_wei, now=now):
        return False
    _store_replacement(
        newest=newest,
        kind=Attempt.Kind.CANCELLATION,
        to=newest.relayer.address,
        data=b"",
        gas_limit=SELF_TRANSFER_GAS,
        fees=fees,
        now=now,
    )
    return True


def _store_replacement(
    *, newest: Attempt, kind: Attempt.Kind, to: str, data: bytes, gas_limit: int, fees: Fees, now: datetime
) -> None:
    signed = get_signer().sign(
        relayer=newest.relayer.address,
        transaction=UnsignedTransaction(
            chain_id=newest.chain_id,
            account_nonce=newest.account_nonce,
            max_priority_fee_per_gas_wei=fees.max_priority_fee_per_gas_wei,
            max_fee_per_gas_wei=fees.max_fee_per_gas_wei,
            gas_limit=gas_limit,
            to=to,
            data=data,
        ),
    )
    same_nonce = Attempt.objects.filter(relayer=newest.relayer, account_nonce=newest.account_nonce)
    same_nonce.filter(status=Attempt.Status.SENT).update(status=Attempt.Status.REPLACED)
    same_nonce.filter(status=Attempt.Status.SIGNED).update(status=Attempt.Status.WITHDRAWN)
    Attempt.objects.create(
        relay_transaction_id=newest.relay_transaction_id,
        chain_id=newest.chain_id,
        relayer=newest.relayer,
        account_nonce=newest.account_nonce,
        sequence=newest.sequence + 1,
        kind=kind,
        transaction_hash=signed.transaction_hash,
        raw=signed.raw,
        gas_limit=gas_limit,
        max_fee_per_gas_wei=fees.max_fee_per_gas_wei,
        max_priority_fee_per_gas_wei=fees.max_priority_fee_per_gas_wei,
        max_extra_fee_wei=fees.highest_extra_fee_wei(gas_limit=gas_limit, data_bytes=len(data)),
        created_at=now,
    )
    loops.notify_signed()


@signed_outside
def replace(*, attempt_id: int, fees: Fees, now: datetime) -> bool:
    """
    Sign the attempt's transaction again at the current `fees` (wei per gas) or above, and store it.

    The hold of acceptance is the most that the user or the sponsor pays. The service covers
    the excess within its loss limits; beyond them, the call waits for lower gas prices.

    Returns False if nothing was signed: the loss limits forbid it, the attempt is not
    the newest of its account nonce, or higher fees would exceed the cap.
    """
    call_id = Attempt.objects.values_list("relay_transaction_id", flat=True).get(pk=attempt_id)
    call = RelayTransaction.objects.select_for_update(no_key=True).select_related("hold").get(pk=call_id)
    newest = call.attempts.select_related("relayer").latest("sequence")
    bumped = higher_fees(attempt=newest, fees=fees)
    if not call.is_in_progress or newest.pk != attempt_id or bumped is None:
        return False
    if newest.kind == Attempt.Kind.CANCELLATION:
        return store_cancellation(call=call, newest=newest, fees=bumped, now=now)
    worst_cost_wei = bumped.highest_cost_wei(gas_limit=newest.gas_limit, data_bytes=len(call.calldata))
    if not _cover(call=call, cost_wei=worst_cost_wei, now=now):
        return False
    _store_replacement(
        newest=newest,
        kind=Attempt.Kind.CALL,
        to=call.key_manager_address,
        data=call.calldata,
        gas_limit=newest.gas_limit,
        fees=bumped,
        now=now,
    )
    return True


def _cover(*, call: RelayTransaction, cost_wei: int, now: datetime) -> bool:
    """Reserve, as the service's loss, what this cost is above the holds of the user and the sponsor."""
    of_sponsor = CreditHold.objects.filter(sponsors__hold_id=call.hold_id).first()
    held = call.hold.amount + (of_sponsor.amount if of_sponsor else 0)
    excess_wei = cost_wei - held * call.credit_wei
    return excess_wei <= 0 or _reserve_loss(
        call=call, kind=Loss.Kind.REPLACEMENT, amount_wei=excess_wei, now=now
    )


def _reserve_loss(*, call: RelayTransaction, kind: Loss.Kind, amount_wei: int, now: datetime) -> bool:
    """Reserve the loss once for the whole call, because the chain executes only one of its attempts."""
    return losses.reserve(key=call.hold.key, user_id=call.user_id, amount_wei=amount_wei, kind=kind, now=now)
