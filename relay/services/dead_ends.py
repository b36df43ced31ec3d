"""
Dead ends: calls that cannot be executed any more, though their account nonce was given out.

The account nonce is used up by a self-transfer that the service pays. Only when
the chain has confirmed it does the call end and its hold go back, because until
then the call's own bytes could still be mined.
"""

from datetime import datetime

from django.db import transaction

from gateway.chain.fees import Fees
from relay.models import Attempt, RelayTransaction
from relay.services.attempts import store_cancellation
from relay.services.fees import outbid

# The only reason for a cancellation that is the caller's doing, and so counts against the budget of dead ends.
PREDECESSOR_FAILED = "predecessor-failed"


@transaction.atomic(durable=True)
def begin(
    *,
    attempt: Attempt,
    ends_as: RelayTransaction.Status,
    code: str,
    detail: str,
    fees: Fees,
    now: datetime,
    only_unsent: bool = False,
) -> bool:
    """
    Store a self-transfer on the attempt's account nonce, and what its call will end as.

    Returns False where the call is settled, a dead end has begun, a newer attempt has
    taken over, or outbidding what was sent would exceed the fee cap; with `only_unsent`
    also where the attempt was broadcast. `fees` are today's, in wei per gas.
    """
    row = RelayTransaction.objects.select_for_update(no_key=True).get(pk=attempt.relay_transaction_id)
    newest = row.attempts.select_related("relayer").latest("sequence")
    offer = outbid(attempt=newest, fees=fees)
    if not row.is_in_progress or row.ends_as or newest.pk != attempt.pk or offer is None:
        return False
    if only_unsent and newest.first_sent_at is not None:
        return False
    store_cancellation(newest=newest, fees=offer, now=now)
    row.ends_as, row.end_code, row.end_detail = ends_as, code, detail
    row.save(update_fields=["ends_as", "end_code", "end_detail"])
    return True
