"""Corrections by staff: small ones at once, large ones after approval (`gateway.staff.approvals`)."""

from credits.models import LARGEST_ADJUSTMENT
from credits.queries import balance_of
from credits.services import entries
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import CREDITS, Done, Kind
from gateway.staff.models import ApprovalRequest
from users.models import User


def request(*, user: User, credits: int, key: str, actor: User, reason: str) -> ApprovalRequest:
    """
    Request an adjustment of a user's credits, up or down. It is posted at once if it is within one person's limit.

    A repeated key returns the first request.

    Raises:
        ReasonRequired: the reason is blank.
        AboveCeiling: the amount exceeds the ceiling.
        RequestConflict: the key names another request.
        ValueError: `credits` is zero, or exceeds `LARGEST_ADJUSTMENT` in either direction.
    """
    if not 1 <= abs(credits) <= LARGEST_ADJUSTMENT:
        raise ValueError("an adjustment must be at least one credit and fit into JSON")
    balance = balance_of(user).balance
    return approvals.ask(
        kind=ADJUST,
        actor=actor,
        reason=reason,
        key=key,
        row=user,
        person=user,
        amount=abs(credits),
        payload={"credits": credits},
        changes={"credits": ("", f"{credits:+d}"), "balance": (str(balance), str(balance + credits))},
    )


def _post(approval: ApprovalRequest) -> Done:
    user, moved = User.objects.get(pk=approval.object_id), int(approval.payload["credits"])
    entry = entries.adjust(
        user=user,
        credits=moved,
        key=f"approval:{approval.pk}",
        actor=approval.requested_by,
        reason=approval.reason,
    )
    return Done(f"{moved:+d} credits were posted.", user, entry)


ADJUST = approval_kinds.register(
    Kind(
        name="adjust_credits",
        title="Adjust credits",
        asks="credits.adjust_credits",
        decides="credits.decide_adjustment",
        pool=CREDITS,
        carry_out=_post,
    )
)
