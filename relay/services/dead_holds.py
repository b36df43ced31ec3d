"""
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
from credits.services import ledger
from gateway.common import audit
from gateway.common.errors import stated
from gateway.common.owner import ProfileOwner
from relay.errors import HoldNotDead
from relay.models import RelayTransaction

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


def release(*, hold_id: int, actor: ProfileOwner, reason: str, now: datetime) -> CreditHold:
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
        if found is None or not ledger.release(hold_id=hold_id):
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
