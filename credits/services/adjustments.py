"""
Corrections by staff: small ones at once, large ones when a second person agrees.

Alone, one person may move `ADJUSTMENT_APPROVAL_LIMIT` credits per user in 24 hours, either way, so that a
large sum in small parts is still a large sum. Lock order: a request's row that is decided, then the account.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Abs, Now

from credits.errors import AdjustmentDecided, KeyConflict, OwnAdjustment
from credits.models import LARGEST_ADJUSTMENT, AdjustmentDecision, AdjustmentRequest
from credits.services import entries
from gateway.common.errors import stated
from users.models import User

_COUNTED = timedelta(hours=24)


def request(*, user: User, credits: int, key: str, actor: User, reason: str) -> AdjustmentRequest:
    """
    Ask for an adjustment by a signed number of credits, and post it at once where one person may.

    A repeated key returns the first request, whatever became of it.

    Raises:
        ReasonRequired: the reason is blank.
        KeyConflict: the key names another request.
        ValueError: `credits` is zero, or more than `LARGEST_ADJUSTMENT` either way.
    """
    if not 1 <= abs(credits) <= LARGEST_ADJUSTMENT:
        raise ValueError("an adjustment moves at least one credit, and no more than JSON can hold")
    new = AdjustmentRequest(
        user_id=user.pk, credits=credits, reason=stated(reason), key=key, requested_by_id=actor.pk
    )
    with transaction.atomic():
        # Under the lock, every earlier adjustment of the user is counted.
        entries.lock_account(user=user)
        new.needs_second_person = _moved_alone(new) + abs(credits) > settings.ADJUSTMENT_APPROVAL_LIMIT
        AdjustmentRequest.objects.bulk_create([new], ignore_conflicts=True)
        row = _stored(new)
        if row.decision == AdjustmentDecision.PENDING and not row.needs_second_person:
            _post(row, decided_by=None)
    return row


def approve(*, request_id: int, actor: User) -> AdjustmentRequest:
    """
    Approve an adjustment that somebody else requested, and post it, once.

    Raises:
        OwnAdjustment: `actor` requested it.
        AdjustmentDecided: it was approved or rejected before.
    """
    with transaction.atomic():
        row = _undecided(request_id, actor)
        _post(row, decided_by=actor)
    return row


def reject(*, request_id: int, actor: User) -> AdjustmentRequest:
    """
    Reject an adjustment that somebody else requested; nothing is posted.

    Raises:
        OwnAdjustment: `actor` requested it.
        AdjustmentDecided: it was approved or rejected before.
    """
    with transaction.atomic():
        row = _undecided(request_id, actor)
        _decide(row, AdjustmentDecision.REJECTED, decided_by=actor)
    return row


def _stored(new: AdjustmentRequest) -> AdjustmentRequest:
    """Return the row of the key: this request's, or that of the first one, which must be the same request."""
    row = AdjustmentRequest.objects.select_related("user", "requested_by").get(key=new.key)
    if (row.user_id, row.credits, row.requested_by_id) != (new.user_id, new.credits, new.requested_by_id):
        raise KeyConflict(key=new.key)
    return row


def _moved_alone(new: AdjustmentRequest) -> int:
    """Return the credits that the same person has moved for the user in the last day, without a second person."""
    alone = AdjustmentRequest.objects.filter(
        user_id=new.user_id,
        requested_by_id=new.requested_by_id,
        needs_second_person=False,
        created_at__gt=Now() - _COUNTED,
    )
    return alone.aggregate(total=Sum(Abs("credits")))["total"] or 0


def _undecided(request_id: int, actor: User) -> AdjustmentRequest:
    """Lock the request, so that of two simultaneous decisions the second sees the first."""
    requests = AdjustmentRequest.objects.select_for_update(of=("self",)).select_related(
        "user", "requested_by"
    )
    row = requests.get(pk=request_id)
    if row.decision != AdjustmentDecision.PENDING:
        raise AdjustmentDecided(decision=row.get_decision_display())
    if row.requested_by_id == actor.pk:
        raise OwnAdjustment
    return row


def _post(row: AdjustmentRequest, *, decided_by: User | None) -> None:
    row.entry = entries.adjust(
        user=row.user,
        credits=row.credits,
        key=f"adjustment:{row.pk}",
        actor=row.requested_by,
        reason=row.reason,
    )
    _decide(row, AdjustmentDecision.APPROVED, decided_by=decided_by)


def _decide(row: AdjustmentRequest, decision: AdjustmentDecision, *, decided_by: User | None) -> None:
    undecided = AdjustmentRequest.objects.filter(pk=row.pk, decision=AdjustmentDecision.PENDING)
    undecided.update(
        decision=decision,
        decided_by_id=decided_by.pk if decided_by else None,
        entry=row.entry,
        decided_at=Now(),
    )
    row.refresh_from_db(fields=["decision", "decided_by", "decided_at"])
