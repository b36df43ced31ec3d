"""
Repairs sponsors' holds after a process of a version without sponsors has settled or reopened a call.

This version closes and reopens both holds in one transaction. During an upgrade, a relay worker of the previous version
may still close or reopen only the user's hold. This sweep then repairs the sponsor's hold within a minute.
"""

import logging

from django.db import transaction

from credits.models import CreditHold
from credits.services import holds
from gateway.common import db
from gateway.common.tasks import isolated
from relay.models import IN_PROGRESS_SQL, RelayTransaction
from sponsors.rules.policies import sponsor_part
from sponsors.services import holding

logger = logging.getLogger(__name__)


def follow_calls() -> int:
    """Close the open holds of settled calls and reopen the closed ones of calls in progress; return how many."""
    followed = 0
    for (call_id,) in db.all_rows(_LEFT_BEHIND, {}):
        with isolated(f"the sponsor's hold of call {call_id}"):
            followed += _follow(call_id)
    return followed


@transaction.atomic(durable=True)
def _follow(call_id: int) -> bool:
    """Close or reopen one sponsor's hold; return False if another worker has done it."""
    call = RelayTransaction.objects.select_for_update(no_key=True, of=("self",)).get(pk=call_id)
    share = holding.shares_of(hold_ids=[call.hold_id])[call.hold_id]
    if call.is_in_progress:
        moved = bool(holds.reopen(hold_ids=[share.hold_id]))
    else:
        # The sponsor does not pay the part that the user has already paid.
        paid = CreditHold.objects.values_list("captured_amount", flat=True).get(pk=call.hold_id) or 0
        part = min(sponsor_part(call.real_cost, share_percent=share.percent), call.real_cost - paid)
        moved = bool(holds.close(costs={share.hold_id: max(0, part)}))
    if moved:
        logger.warning("the sponsor's hold of %s followed its call", call.transaction_hash)
        holding.recount(hold_ids=[call.hold_id])
    return moved


# Both parts start from few rows: open holds of sponsors, and calls in progress.
_LEFT_BEHIND = f"""
SELECT call.id
FROM credits_account AS account
JOIN credits_hold AS open ON open.account_id = account.id AND open.status = 'HELD'
JOIN sponsors_sponsoredcall AS sponsored ON sponsored.sponsor_hold_id = open.id
JOIN relay_relaytransaction AS call ON call.hold_id = sponsored.hold_id
WHERE account.sponsor_id IS NOT NULL AND call.status NOT IN {IN_PROGRESS_SQL}
UNION ALL
SELECT call.id
FROM relay_relaytransaction AS call
JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = call.hold_id
JOIN credits_hold AS closed ON closed.id = sponsored.sponsor_hold_id AND closed.status <> 'HELD'
WHERE call.status IN {IN_PROGRESS_SQL}
ORDER BY 1 LIMIT 200
"""  # noqa: S608 - constants of our own
