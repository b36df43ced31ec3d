"""
Signed events that staff must settle: earnings that name no user, and reversals whose credit never arrived.

Staff assign such an earning to a person, by a request for its credits; a repeat from the network that names the user
assigns it, too. If there is no owner, staff forfeit the credit or close the reversal.
"""

from decimal import Decimal

from django.db import transaction

from earnings.errors import EarningDecided
from earnings.models import Postback, PostbackKind, PostbackState, Refusal
from earnings.services import earnings
from earnings.states import Event, allows, apply
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import CREDITS, Done, Kind, RequestOutdated
from gateway.staff.models import ApprovalRequest
from rewards.rules import earned_credits
from users.models import User


def request_assignment(
    *, postback_id: int, user: User, actor: User, reason: str, key: str
) -> ApprovalRequest:
    """
    Request that an event that names no user is the user's; within the limit of one person it is decided at once.

    The request counts the credits before bonuses, and those of a reversal as none. A repeated key returns the first
    request.

    Raises:
        PermissionDenied, ReasonRequired, AboveCeiling, RequestConflict: see `approvals.ask`.
        EarningDecided: the event has an owner, or staff have closed it.
    """
    postback = Postback.objects.select_related("network").get(pk=postback_id)
    if not allows(postback, Event.ASSIGN):
        raise EarningDecided(state=postback.get_state_display())
    worth = 0
    if postback.kind == PostbackKind.CREDIT:
        worth = earned_credits(amount=postback.amount, rate=postback.rate, bonus=Decimal(0))
    return approvals.ask(
        kind=ASSIGN,
        actor=actor,
        reason=reason,
        key=key,
        row=postback,
        person=user,
        amount=min(worth, SAFE_INTEGER_MAX),
        payload={},
        changes={"user": ("none", str(user)), "credits before bonuses": ("", f"{worth:,}")},
    )


@transaction.atomic
def assign(*, postback_id: int, user: User) -> Postback:
    """
    Decide an event that named no user as the user's, with reversals of it that named no user. Joins the transaction.

    Caps and hold times apply.

    Raises:
        EarningDecided: the event has an owner, or staff have closed it.
    """
    unnamed = Postback.objects.filter(state=PostbackState.UNASSIGNED)
    if not unnamed.filter(pk=postback_id).update(user=user, state=PostbackState.RECEIVED):
        row = Postback.objects.get(pk=postback_id)
        raise EarningDecided(state=row.get_state_display())
    postback = Postback.objects.select_related("network").get(pk=postback_id)
    if postback.kind == PostbackKind.CREDIT:
        reversals = Postback.objects.filter(network=postback.network, kind=PostbackKind.REVERSAL)
        named = reversals.filter(user=user, original_id=postback.original_id).values("external_id")
        unnamed.filter(
            network=postback.network, kind=PostbackKind.REVERSAL, original_id=postback.original_id
        ).exclude(external_id__in=named).update(user=user, state=PostbackState.RECEIVED)
    earnings.decide_all([postback])
    return postback


def _carry_out(approval: ApprovalRequest) -> Done:
    if approval.person is None:
        raise RequestOutdated("The person does not exist any more.")
    postback = assign(postback_id=int(approval.object_id), user=approval.person)
    return Done(f"It is decided: {postback.get_state_display()}.", postback, postback.entry)


ASSIGN = approval_kinds.register(
    Kind(
        name="assign_earning",
        title="Give an earning that names no user to a person",
        asks="earnings.decide_earning",
        decides="earnings.decide_release",
        pool=CREDITS,
        carry_out=_carry_out,
    )
)


@transaction.atomic
def close(*, postback_id: int) -> None:
    """
    Close an event without an effect: one that names no user, or a reversal without its credit. Joins the transaction.

    Raises:
        EarningDecided: the event was decided before.
    """
    row = Postback.objects.select_for_update(of=("self",)).get(pk=postback_id)
    if not can_be_closed(row):
        raise EarningDecided(state=row.get_state_display())
    is_credit = row.kind == PostbackKind.CREDIT
    apply(row, Event.FORFEIT if is_credit else Event.REFUSE)
    row.refused_because = Refusal.FORFEITED if is_credit else Refusal.CLOSED
    row.save(update_fields=["state", "refused_because"])


def can_be_closed(postback: Postback) -> bool:
    waits = postback.kind == PostbackKind.REVERSAL and postback.state == PostbackState.RECEIVED
    return waits or postback.state == PostbackState.UNASSIGNED
