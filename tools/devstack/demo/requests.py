"""Requests of staff that the demo carries out by itself: what it posts and adds has a cause, as the books want it."""

from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Model
from django.db.models.functions import Now

from gateway.staff import audit
from gateway.staff.form_kinds import values_of
from gateway.staff.models import ApprovalRequest


@transaction.atomic
def adjust(*, owner: Model, credits: int, key: str, staff: Any, reason: str) -> None:
    """Adjust the credits of a user or a sponsor, once for each key."""
    from credits.services import entries
    from sponsors.models import Sponsor

    kind = "fund_sponsor" if isinstance(owner, Sponsor) else "adjust_credits"
    request = _carried_out(
        kind,
        owner,
        key=key,
        staff=staff,
        reason=reason,
        object_id=str(owner.pk),
        payload={"credits": credits},
    )
    post: dict[str, Any] = {
        "credits": credits,
        "actor": staff,
        "reason": reason,
        "key": f"approval:{request.pk}",
    }
    if isinstance(owner, Sponsor):
        entries.adjust_sponsor(sponsor_id=owner.pk, **post)
    else:
        entries.adjust(user=owner, **post)  # type: ignore[arg-type]


def added(kind: str, row: Model, *names: str, staff: Any) -> None:
    """Store the request for a new row, with these of its fields."""
    payload = {"values": values_of(row, names), "before": {}}
    key, reason = f"demo:{kind}:{row.pk}", "Demo of the development stack."
    _carried_out(kind, row, key=key, staff=staff, reason=reason, made_id=str(row.pk), payload=payload)


def _carried_out(
    kind: str, row: Model, *, key: str, staff: Any, reason: str, **fields: Any
) -> ApprovalRequest:
    request, is_new = ApprovalRequest.objects.get_or_create(
        key=key,
        defaults={
            "kind": kind,
            "content_type": ContentType.objects.get_for_model(row),
            "subject": str(row)[:200],
            "changes": {},
            "reason": reason,
            "requested_by": staff,
            "requested_roles": ["superuser"],
            "needs_second_person": False,
            "status": ApprovalRequest.Status.DONE,
            "decided_at": Now(),
            "expires_at": Now(),
            **fields,
        },
    )
    if is_new:
        approval: audit.Approval = {"request": request.pk, "kind": kind, "status": "done"}
        audit.record(actor=staff, row=row, action=f"{kind} carried out", reason=reason, approval=approval)
    return request
