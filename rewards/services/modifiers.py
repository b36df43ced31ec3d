"""Modifiers: granted once per key, by staff within their limits; they expire by the database's clock."""

import math
from datetime import timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models.functions import Now

from credits.errors import KeyConflict
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import BONUSES, AboveCeiling, Done, Kind
from gateway.staff.models import ApprovalRequest
from rewards.errors import ModifierEnded
from rewards.models import MAX_MODIFIER_SUM, Modifier, ModifierType
from users.models import User

# How long to keep ended modifiers: older ones do not explain any current figure.
_KEEP = timedelta(days=90)


def grant(
    *,
    user: User,
    modifier_type: ModifierType,
    value: Decimal,
    minutes: int,
    key: str,
    reason: str,
    actor: User | None = None,
) -> Modifier:
    """
    Grant the user a bonus of the fraction `value` for `minutes`, starting now.

    A repeated key returns the first modifier. Runs inside the caller's transaction.

    Raises:
        KeyConflict: the key was used for another user or type.
        ValueError: `value` or `minutes` is not positive.
    """
    if value <= 0 or minutes <= 0:
        raise ValueError("a modifier needs a positive value and duration")
    modifier = Modifier(
        user_id=user.pk,
        modifier_type=modifier_type,
        value=value,
        key=key,
        reason=reason,
        actor_id=actor.pk if actor else None,
        created_at=Now(),
        expires_at=Now() + timedelta(minutes=minutes),
    )
    Modifier.objects.bulk_create([modifier], ignore_conflicts=True)
    row = Modifier.objects.get(key=key)
    if (row.user_id, row.modifier_type) != (user.pk, modifier_type):
        raise KeyConflict(key=key)
    return row


def request(
    *,
    user: User,
    modifier_type: ModifierType,
    value: Decimal,
    minutes: int,
    key: str,
    reason: str,
    actor: User,
) -> ApprovalRequest:
    """
    Request a bonus of the fraction `value` for `minutes`; grant it at once within the limit of one person.

    It starts when granted. A repeated key returns the first request.

    Raises:
        PermissionDenied, ReasonRequired, AboveCeiling, RequestConflict: see `approvals.ask`.
        ValueError: `value` or `minutes` is not positive.
    """
    if value <= 0 or minutes <= 0:
        raise ValueError("a modifier needs a positive value and duration")
    return approvals.ask(
        kind=GRANT,
        actor=actor,
        reason=reason,
        key=key,
        row=user,
        person=user,
        amount=math.ceil(100 * value * minutes / (24 * 60)),
        payload={"modifier_type": modifier_type.value, "value": str(value), "minutes": minutes},
        changes={
            modifier_type.label: ("", f"+{(100 * value).normalize():f} % for {minutes / (24 * 60):,.6g} days")
        },
    )


def _check(approval: ApprovalRequest) -> None:
    if Decimal(approval.payload["value"]) > MAX_MODIFIER_SUM:
        raise AboveCeiling("A modifier adds at most 100 %, and so do all of its type together.")


def _carry_out(approval: ApprovalRequest) -> Done:
    modifier = grant(
        user=User.objects.get(pk=approval.object_id),
        modifier_type=ModifierType(approval.payload["modifier_type"]),
        value=Decimal(approval.payload["value"]),
        minutes=approval.payload["minutes"],
        key=f"approval:{approval.pk}",
        reason=approval.reason,
        actor=approval.requested_by,
    )
    what, percent = modifier.get_modifier_type_display(), (100 * modifier.bonus).normalize()
    until = f"{modifier.expires_at:%Y-%m-%d %H:%M} UTC"
    return Done(f"{what} +{percent:f} % until {until}.", modifier.user, modifier)


GRANT = approval_kinds.register(
    Kind(
        name="grant_modifier",
        title="Grant a modifier",
        asks="rewards.add_modifier",
        decides="rewards.decide_modifier",
        pool=BONUSES,
        check=_check,
        carry_out=_carry_out,
    )
)


@transaction.atomic
def end(*, modifier_id: int) -> None:
    """
    End an active modifier now, by the database's clock. Joins the caller's transaction.

    Credits earned with it stay.

    Raises:
        ModifierEnded: it has already ended; nothing changes.
    """
    row = Modifier.objects.filter(pk=modifier_id)
    # Locks the row first, so that the second of two concurrent calls finds the modifier ended.
    list(row.select_for_update(no_key=True).values_list("pk"))
    if not row.active().update(expires_at=Now()):
        raise ModifierEnded


def purge() -> int:
    """Delete modifiers that ended 90 days ago; return how many."""
    return Modifier.objects.filter(expires_at__lt=Now() - _KEEP).delete()[0]
