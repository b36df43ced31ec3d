"""
Cancel calls that have an account nonce but can no longer be executed, and release orphaned holds.

A self-transfer that the service pays uses up the account nonce. The call is settled and
its hold released only when the chain has confirmed the self-transfer, because until then
the call's own bytes could still be mined.

A relay hold is committed and closed together with its relay transaction. It is orphaned
if it is open although the relay transaction is settled, or if it is old and belongs to
no call; both mean that rows were changed by hand. A hold whose call is in progress is
never orphaned: the call's bytes may still be mined.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from credits.models import CreditHold, HoldStatus
from credits.services import holds
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain, on_chain
from gateway.chain.fees import Fees
from gateway.chain.remote_signing import signed_outside
from gateway.common.errors import stated
from gateway.staff import audit
from relay.errors import AlreadyBroadcast, HoldNotOrphaned, LossLimitReached
from relay.models import Attempt, RelayTransaction
from relay.services.sending.replacement import current_fees, replacement_fees, store_cancellation
from users.models import User

_Status = RelayTransaction.Status

# The name of the action in the audit log, by which reconciliation finds released holds.
RELEASED = "release orphaned hold"
# No database transaction of the service stays open this long, so none can still commit the missing row.
_OLD = timedelta(hours=1)
# For how many times RELAY_REPLACE_SECONDS a call may stop its relayer, if no block takes it at its fees.
_MOST_PERIODS = 10


@signed_outside
def begin(
    *,
    attempt: Attempt,
    terminal_status: RelayTransaction.Status,
    code: str,
    detail: str,
    fees: Fees,
    now: datetime,
    only_unsent: bool = False,
) -> bool:
    """
    Store a self-transfer on the attempt's account nonce, and the terminal status that its call will have.

    Returns False if the call is settled, its cancellation has begun, a newer attempt
    has replaced this one, a replacement would exceed the fee cap, or the service has
    reached its loss limit; with `only_unsent`, also if the attempt was broadcast. `fees`
    are the current ones, in wei per gas.
    """
    calls = RelayTransaction.objects.select_related("hold")
    call = calls.select_for_update(no_key=True, of=("self",)).get(pk=attempt.relay_transaction_id)
    newest = call.attempts.select_related("relayer").latest("sequence")
    bumped = replacement_fees(attempt=newest, fees=fees)
    if not call.is_in_progress or call.terminal_status or newest.pk != attempt.pk or bumped is None:
        return False
    if only_unsent and newest.first_sent_at is not None:
        return False
    if not store_cancellation(call=call, newest=newest, fees=bumped, now=now):
        return False
    call.terminal_status, call.failure_code, call.failure_detail = terminal_status, code, detail
    call.save(update_fields=["terminal_status", "failure_code", "failure_detail"])
    return True


def begin_if_overdue(
    *, attempt: Attempt, fees: Fees, now: datetime, stops_since: datetime | None = None
) -> bool:
    """
    Begin to cancel a call that no block took until its deadline, at the highest fees that the service can pay.

    The deadline is earlier if the call stops its relayer since `stops_since`. See `begin`.
    """
    accepted_at = RelayTransaction.objects.values_list("created_at", flat=True)
    deadline = accepted_at.get(pk=attempt.relay_transaction_id) + timedelta(
        seconds=settings.RELAY_DEADLINE_SECONDS
    )
    if stops_since is not None:
        deadline = min(
            deadline, stops_since + _MOST_PERIODS * timedelta(seconds=get_chain().pace.replace_seconds)
        )
    return now > deadline and begin(
        attempt=attempt,
        terminal_status=_Status.CANCELLED,
        code="not-mined-in-time",
        detail="No block took it until its deadline, at the highest fees that the service pays for it.",
        fees=fees,
        now=now,
    )


def may_be_cancelled(call: RelayTransaction) -> bool:
    """Return whether the call is in progress and none of its attempts was ever broadcast."""
    if not call.is_in_progress or call.terminal_status:
        return False
    return not call.attempts.exclude(first_sent_at=None).exists()


def cancel_unsent(*, relay_transaction_id: int, now: datetime) -> None:
    """
    Use up the call's account nonce by a self-transfer; once that is confirmed, the call is settled as Cancelled.

    Raises:
        AlreadyBroadcast: the call was broadcast, is settled, or is being cancelled; nothing changes.
        LossLimitReached: the service has reached its loss limit.
        NodeUnavailable: no node responded, so current fees are unknown.
    """
    call = RelayTransaction.objects.get(pk=relay_transaction_id)
    if not may_be_cancelled(call):
        raise AlreadyBroadcast
    with on_chain(call.chain_id):
        begun = begin(
            attempt=Attempt.objects.filter(relay_transaction=call).latest("sequence"),
            terminal_status=_Status.CANCELLED,
            code="cancelled-by-staff",
            detail="Staff cancelled it before it was sent.",
            fees=current_fees(head=get_chain_client().head()),
            now=now,
            only_unsent=True,
        )
    if not begun:
        call.refresh_from_db()
        raise LossLimitReached if may_be_cancelled(call) else AlreadyBroadcast


def orphaned_holds(*, now: datetime) -> QuerySet[CreditHold]:
    """Return the orphaned holds, oldest first; a consistent database has none."""
    settled = Q(relay_transaction__isnull=False) & ~Q(
        relay_transaction__status__in=RelayTransaction.IN_PROGRESS
    )
    without_call = Q(relay_transaction=None, unsigned_call=None, created_at__lt=now - _OLD)
    return CreditHold.objects.filter(
        settled | without_call, status=HoldStatus.HELD, key__startswith="relay:"
    ).order_by("pk")


def release(*, hold_id: int, actor: User, reason: str, now: datetime) -> None:
    """
    Release an orphaned hold, and record the actor and the reason in the audit log.

    If its call was settled with a cost, the service bears the cost, and the log records how much.

    Raises:
        ReasonRequired: the reason is blank.
        HoldNotOrphaned: the hold is closed, belongs to a call in progress, is too recent, or is not a relay hold.
    """
    reason = stated(reason)
    with transaction.atomic():
        # Lock order: relay transaction, hold, account.
        call = RelayTransaction.objects.select_for_update(no_key=True).filter(hold_id=hold_id).first()
        hold = orphaned_holds(now=now).filter(pk=hold_id).first()
        if hold is None or not holds.release(hold_id=hold_id):
            raise HoldNotOrphaned("This hold is closed, or something may still close it.")
        audit.record(
            actor=actor,
            row=hold,
            action=RELEASED,
            reason=reason,
            changes={
                "held": (str(hold.amount), "0"),
                "cost borne by the service": ("0", str(call.real_cost if call else 0)),
            },
        )
