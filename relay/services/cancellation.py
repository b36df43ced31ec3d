"""
Dead ends: calls that cannot be executed any more, though their account nonce was given out.

The account nonce is used up by a self-transfer that the service pays. Only when
the chain has confirmed it does the call end and its hold go back, because until
then the call's own bytes could still be mined.

Cancelling by staff: a call that was signed and never broadcast ends like any other dead end.

Holds that nothing will ever close, and their release by staff.

A hold of the relay is committed together with its relay transaction and closed together
with it. So it is proven dead in two cases, and both mean that somebody meddled with rows:
its relay transaction has ended and the hold is open, or there is none though the hold is
old. A hold whose call is in progress is never dead, however long that takes: its bytes may
still be mined. Holds of other parts are not the relay's to judge.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from credits.models import CreditHold, HoldStatus
from credits.services import holds
from gateway.admin import audit
from gateway.chain.client import get_chain_client
from gateway.chain.fees import Fees
from gateway.common.errors import stated
from relay.errors import AlreadyBroadcast, HoldNotDead
from relay.models import Attempt, RelayTransaction
from relay.services.replacement import fees_today, outbid, store_cancellation
from users.models import User

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


_Status = RelayTransaction.Status


def may_be_cancelled(row: RelayTransaction) -> bool:
    """Return whether the call is in progress and nothing of it was ever broadcast, as the rows say now."""
    return row.is_in_progress and not row.ends_as and not row.attempts.exclude(first_sent_at=None).exists()


def cancel_unsent(*, relay_transaction_id: int, now: datetime) -> None:
    """
    Use up the call's account nonce by a self-transfer, so that the call ends as Cancelled once that is confirmed.

    Raises:
        AlreadyBroadcast: the call was broadcast, is ended, or is being ended; nothing changes.
        NodeUnavailable: no node answered, so today's fees are unknown.
    """
    row = RelayTransaction.objects.get(pk=relay_transaction_id)
    if not may_be_cancelled(row):
        raise AlreadyBroadcast
    begun = begin(
        attempt=Attempt.objects.filter(relay_transaction=row).latest("sequence"),
        ends_as=_Status.CANCELLED,
        code="cancelled-by-staff",
        detail="Staff cancelled it before it was sent.",
        fees=fees_today(head=get_chain_client().head()),
        now=now,
        only_unsent=True,
    )
    if not begun:
        raise AlreadyBroadcast


# No transaction of ours stays open this long, so nobody is about to commit the missing row.
_OLD = timedelta(hours=1)
# The name of the action in the audit log, by which reconciliation finds what was released.
RELEASED = "release dead hold"


def dead_holds(*, now: datetime) -> QuerySet[CreditHold]:
    """Return the open holds that are proven dead, oldest first; in a sound database there is none."""
    ended = Q(relay_transaction__isnull=False) & ~Q(
        relay_transaction__status__in=RelayTransaction.IN_PROGRESS
    )
    orphaned = Q(relay_transaction=None, created_at__lt=now - _OLD)
    return CreditHold.objects.filter(
        ended | orphaned, status=HoldStatus.HELD, key__startswith="relay:"
    ).order_by("pk")


def release(*, hold_id: int, actor: User, reason: str, now: datetime) -> CreditHold:
    """
    Give the credits of a dead hold back, and write down who wanted it and why.

    Where its call has ended with a cost, the service bears it; the log records how much.

    Raises:
        ReasonRequired: the reason is blank.
        HoldNotDead: it is closed, of a call in progress, too young, or no hold of the relay.
    """
    why = stated(reason)
    with transaction.atomic():
        # Lock order: relay transaction, hold, account. Ended, it never changes again; in progress, it is no case.
        row = RelayTransaction.objects.select_for_update(no_key=True).filter(hold_id=hold_id).first()
        found = dead_holds(now=now).filter(pk=hold_id).first()
        if found is None or not holds.release(hold_id=hold_id):
            raise HoldNotDead("This hold is closed, or something may still close it.")
        audit.record(
            actor=actor,
            row=found,
            action=RELEASED,
            reason=why,
            changes={
                "held": (str(found.amount), "0"),
                "cost borne by the service": ("0", str(row.real_cost if row else 0)),
            },
        )
    found.refresh_from_db()
    return found
