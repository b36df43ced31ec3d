"""
Corrections by staff: small ones at once, large ones when a second person agrees.

Alone, one person may move `ADJUSTMENT_APPROVAL_LIMIT` credits per user in 24 hours, either
way, so that a large sum in small parts is still a large sum.
Lock order: a request's row that is decided, then the account.
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
    asked = AdjustmentRequest(
        user_id=user.pk, credits=credits, reason=stated(reason), key=key, requested_by_id=actor.pk
    )
    with transaction.atomic():
        # What follows counts every adjustment of the user that was asked for before.
        entries.lock_account(user=user)
        asked.needs_second_person = _moved_alone(asked) + abs(credits) > settings.ADJUSTMENT_APPROVAL_LIMIT
        AdjustmentRequest.objects.bulk_create([asked], ignore_conflicts=True)
        found = _stored(asked)
        if found.decision == AdjustmentDecision.PENDING and not found.needs_second_person:
            _post(found, decided_by=None)
    return found


def approve(*, request_id: int, actor: User) -> AdjustmentRequest:
    """
    Agree to an adjustment that somebody else asked for, and post it, once.

    Raises:
        OwnAdjustment: `actor` asked for it.
        AdjustmentDecided: it was approved or rejected before.
    """
    with transaction.atomic():
        asked = _undecided(request_id, actor)
        _post(asked, decided_by=actor)
    return asked


def reject(*, request_id: int, actor: User) -> AdjustmentRequest:
    """
    Refuse an adjustment that somebody else asked for; nothing is posted.

    Raises:
        OwnAdjustment: `actor` asked for it.
        AdjustmentDecided: it was approved or rejected before.
    """
    with transaction.atomic():
        asked = _undecided(request_id, actor)
        _decide(asked, AdjustmentDecision.REJECTED, decided_by=actor)
    return asked


def _stored(asked: AdjustmentRequest) -> AdjustmentRequest:
    """Return the row of the key: this request's, or that of the first one, which must have asked the same."""
    found = AdjustmentRequest.objects.select_related("user", "requested_by").get(key=asked.key)
    if (found.user_id, found.credits, found.requested_by_id) != (
        asked.user_id,
        asked.credits,
        asked.requested_by_id,
    ):
        raise KeyConflict(key=asked.key)
    return found


def _moved_alone(asked: AdjustmentRequest) -> int:
    """Return the credits that the same person has moved for the user in the last day, without a second person."""
    alone = AdjustmentRequest.objects.filter(
        user_id=asked.user_id,
        requested_by_id=asked.requested_by_id,
        needs_second_person=False,
        created_at__gt=Now() - _COUNTED,
    )
    return alone.aggregate(total=Sum(Abs("credits")))["total"] or 0


def _undecided(request_id: int, actor: User) -> AdjustmentRequest:
    """Lock the request, so that of two who decide at once the second sees what the first has decided."""
    rows = AdjustmentRequest.objects.select_for_update(of=("self",)).select_related("user", "requested_by")
    asked = rows.get(pk=request_id)
    if asked.decision != AdjustmentDecision.PENDING:
        raise AdjustmentDecided(decision=asked.get_decision_display())
    if asked.requested_by_id == actor.pk:
        raise OwnAdjustment
    return asked


def _post(asked: AdjustmentRequest, *, decided_by: User | None) -> None:
    asked.entry = entries.adjust(
        user=asked.user,
        credits=asked.credits,
        key=f"adjustment:{asked.pk}",
        actor=asked.requested_by,
        reason=asked.reason,
    )
    _decide(asked, AdjustmentDecision.APPROVED, decided_by=decided_by)


def _decide(asked: AdjustmentRequest, decision: AdjustmentDecision, *, decided_by: User | None) -> None:
    undecided = AdjustmentRequest.objects.filter(pk=asked.pk, decision=AdjustmentDecision.PENDING)
    undecided.update(
        decision=decision,
        decided_by_id=decided_by.pk if decided_by else None,
        entry=asked.entry,
        decided_at=Now(),
    )
    asked.refresh_from_db(fields=["decision", "decided_by", "decided_at"])
