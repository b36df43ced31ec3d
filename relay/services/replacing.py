"""Replacing: a better offer on the same account nonce, for an attempt that today's chain would not take."""

from datetime import datetime

from django.conf import settings
from django.db import transaction

from credits.queries import debt_limit_of
from credits.services import ledger
from gateway.chain.fees import Fees
from relay.models import Attempt, RelayTransaction
from relay.pricing import cost_in_credits
from relay.services.attempts import store_cancellation, store_dearer_call
from relay.services.fees import dearer


@transaction.atomic(durable=True)
def replace(*, attempt_id: int, fees: Fees, now: datetime) -> bool:
    """
    Sign the attempt's work again at `fees` (wei per gas, today's), or above them, and store it.

    The hold is raised first where the call may now cost more; where the account
    cannot afford that, the service pays the excess. Returns False where the attempt
    is not the newest of its account nonce, or a better offer would exceed the cap.
    """
    owner_id = Attempt.objects.values_list("relay_transaction_id", flat=True).get(pk=attempt_id)
    row = RelayTransaction.objects.select_for_update(no_key=True).select_related("hold").get(pk=owner_id)
    newest = row.attempts.select_related("relayer").latest("sequence")
    offer = dearer(attempt=newest, fees=fees)
    if not row.is_in_progress or newest.pk != attempt_id or offer is None:
        return False
    if newest.kind == Attempt.Kind.CANCELLATION:
        store_cancellation(newest=newest, fees=offer, now=now)
        return True
    _raise_hold(row=row, gas_limit=newest.gas_limit, price_wei=offer.max_fee_per_gas_wei, now=now)
    store_dearer_call(
        newest=newest, key_manager=row.key_manager_address, calldata=row.calldata, fees=offer, now=now
    )
    return True


def _raise_hold(*, row: RelayTransaction, gas_limit: int, price_wei: int, now: datetime) -> None:
    worst = cost_in_credits(gas=gas_limit, price_wei=price_wei, credit_wei=settings.CREDIT_WEI)
    ledger.raise_hold(hold_id=row.hold_id, credits=worst, debt_limit=debt_limit_of(user=row.user, now=now))
