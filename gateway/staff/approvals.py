"""
Approvals: creating or pricing credits needs a request. One member of staff can carry it out alone only within limits.

Each kind of request is registered once, with the permissions to ask and to decide. A request whose kind has a pool is
carried out at once if its amount fits three limits of the last 24 hours: the actor's, that of the person whose credits
it moves, and the service's. Every other request waits until a second person of another role approves it. Ceilings
apply to everyone, even with approval. `superuser` is a role like the others, so superusers need approval too.

Lock order: the request's row, the pool's row, the rows that carrying it out locks. `ask` locks the pool before it
inserts the request; no other transaction can hold a lock on a row that does not exist yet.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Count, Min, Model, Q, Sum
from django.db.models.functions import Coalesce, Now
from prometheus_client.core import Metric

from gateway.common.errors import PermissionDenied, stated
from gateway.common.metrics import gauge, register
from gateway.common.statements import Statements
from gateway.common.tasks import enqueue_on_commit
from gateway.staff import audit
from gateway.staff.approval_kinds import (
    AboveCeiling,
    Kind,
    Pool,
    RequestConflict,
    RequestDecided,
    decided_by,
    kind_of,
    obstacle,
    others_who_decide,
    roles_of,
)
from gateway.staff.models import ApprovalPool, ApprovalRequest

_COUNTED = timedelta(hours=24)


class Sql(Statements, file=__file__):
    # For a FROM clause.
    carried_out: str


# --- Asking


@transaction.atomic
def ask(
    *,
    kind: Kind,
    actor: Any,
    reason: str,
    key: str,
    row: Model,
    payload: Mapping[str, Any],
    changes: audit.Changes,
    person: Any = None,
    amount: int = 0,
) -> ApprovalRequest:
    """
    Store a request, and carry it out at once if one person may do that alone. Joins the caller's transaction.

    `row` is the row that the request is about, stored or new; `person` is the user whose credits it moves. A repeated
    key returns the first request, whatever its state.

    Raises:
        PermissionDenied: the actor's roles may not ask for this.
        ReasonRequired: the reason is blank.
        AboveCeiling: the amount is above a ceiling.
        RequestConflict: the key names another request.
        DomainError: the service refused to carry it out.
    """
    if not actor.has_perm(kind.asks):
        raise PermissionDenied(f"{actor} has no role that may ask for this.")
    approval = ApprovalRequest(
        kind=kind.name,
        content_type=ContentType.objects.get_for_model(row),
        object_id="" if row.pk is None else str(row.pk),
        subject=str(row)[:200],
        person_id=person.pk if person else None,
        pool=kind.pool.name if kind.pool else "",
        amount=amount,
        payload=dict(payload),
        changes={name: list(pair) for name, pair in changes.items()},
        reason=stated(reason),
        key=key,
        requested_by_id=actor.pk,
        requested_roles=sorted(roles_of(actor)),
        expires_at=Now() + timedelta(hours=settings.APPROVAL_HOURS),
    )
    _check(kind, approval)
    approval.needs_second_person = not _fits_alone(kind, approval)
    stored, is_new = ApprovalRequest.objects.get_or_create(
        key=key, defaults={field: getattr(approval, field) for field in _REQUEST_FIELDS}
    )
    if not is_new:
        return _repeated(stored, approval)
    stored.refresh_from_db(fields=["expires_at"])
    _log(stored, "asked", actor=actor, row=row)
    if not stored.needs_second_person:
        _carry_out(kind, stored, decided_by=None, reason="")
    elif settings.APPROVAL_NOTICE_TO:
        enqueue_on_commit("gateway_admin.announce_request", request_id=stored.pk)
    return stored


_REQUEST_FIELDS = (
    "kind", "content_type_id", "object_id", "subject", "person_id", "pool", "amount", "payload", "changes",
    "reason", "requested_by_id", "requested_roles", "needs_second_person", "expires_at",
)  # fmt: skip


def _repeated(stored: ApprovalRequest, approval: ApprovalRequest) -> ApprovalRequest:
    same = ("kind", "content_type_id", "object_id", "person_id", "payload", "requested_by_id")
    if any(getattr(stored, field) != getattr(approval, field) for field in same):
        raise RequestConflict(key=approval.key)
    return stored


def outcome_of(approval: ApprovalRequest, done: str) -> str:
    """Return the message for the requester: `done` if the request was carried out, else the roles that decide it."""
    if approval.status == ApprovalRequest.Status.DONE:
        return done
    others = others_who_decide(kind_of(approval), approval.requested_roles)
    return f"Request {approval.pk} waits for a second person ({others})."


def notice(*, kind: Kind, actor: Any, person: Any = None) -> str:
    """Return the notice above the form: the actor's own limit, and which roles decide larger amounts."""
    others = f"a second person approves ({others_who_decide(kind, roles_of(actor))}). You cannot approve it yourself."
    if kind.pool is None or kind.always_waits:
        return f"It waits until {others}"
    pool, left = kind.pool, left_alone(pool=kind.pool, actor=actor, person=person)
    return (
        f"You can {pool.verb} {pool.shown(left)} now without approval. Larger amounts wait until {others} "
        f"The ceiling is {pool.shown(pool.limits.ceiling)} at a time."
    )


# --- Limits


class Taken(NamedTuple):
    """Amounts carried out in 24 hours: without a second person, by actor, person and in all; and the total."""

    actor: int
    person: int
    day: int
    everything: int


def taken(*, pool: Pool, actor: Any, person: Any) -> Taken:
    done = ApprovalRequest.objects.filter(
        pool=pool.name, status=ApprovalRequest.Status.DONE, decided_at__gt=Now() - _COUNTED
    )
    alone = Q(needs_second_person=False)
    sums = {
        "actor": alone & Q(requested_by_id=actor.pk),
        "person": alone & Q(person_id=person.pk if person else None),
        "day": alone,
        "everything": Q(),
    }
    amounts = {name: Coalesce(Sum("amount", filter=which), 0) for name, which in sums.items()}
    return Taken(**{name: int(amount) for name, amount in done.aggregate(**amounts).items()})


def left_alone(*, pool: Pool, actor: Any, person: Any) -> int:
    """Return how much the actor can do for the person now without approval."""
    limits, used = pool.limits, taken(pool=pool, actor=actor, person=person)
    left = (limits.actor - used.actor, limits.person - used.person, limits.day - used.day)
    return max(0, min(left))


def _fits_alone(kind: Kind, approval: ApprovalRequest) -> bool:
    """Lock the pool until the transaction ends; return whether the amount is within the limits of one person."""
    if kind.pool is None or kind.always_waits:
        return False
    _lock(kind.pool)
    return approval.amount <= left_alone(pool=kind.pool, actor=approval.requested_by, person=approval.person)


def _lock(pool: Pool) -> None:
    ApprovalPool.objects.bulk_create([ApprovalPool(name=pool.name)], ignore_conflicts=True)
    ApprovalPool.objects.select_for_update().get(name=pool.name)


def _check(kind: Kind, approval: ApprovalRequest) -> None:
    if kind.pool and approval.amount > kind.pool.limits.ceiling:
        raise AboveCeiling(
            f"At most {kind.pool.shown(kind.pool.limits.ceiling)} at a time, even with approval."
        )
    kind.check(approval)


def _check_day(kind: Kind, approval: ApprovalRequest) -> None:
    if kind.pool is None:
        return
    _lock(kind.pool)
    used = taken(pool=kind.pool, actor=approval.requested_by, person=approval.person)
    most = kind.pool.limits.ceiling_day
    if used.everything + approval.amount > most:
        raise AboveCeiling(
            f"At most {kind.pool.shown(most)} in 24 hours, even with approval. Wait, or request less."
        )


# --- Deciding


@transaction.atomic
def approve(*, request_id: int, actor: Any, reason: str) -> str:
    """
    Carry out a waiting request, once, and return the outcome as a sentence.

    Raises:
        OwnRequest, AnotherRoleDecides: `actor` may not decide it.
        RequestDecided: it was decided before, or has expired.
        RequestOutdated: the row has changed since the request was made.
        AboveCeiling: the amount is above the ceiling of a request or of a day.
        DomainError: the service refused; the request stays open.
    """
    approval = _lock_waiting(request_id, actor)
    kind = kind_of(approval)
    _check(kind, approval)
    return _carry_out(kind, approval, decided_by=actor, reason=stated(reason))


@transaction.atomic
def reject(*, request_id: int, actor: Any, reason: str) -> None:
    """
    Reject a waiting request; nothing else changes.

    Raises:
        OwnRequest, AnotherRoleDecides: `actor` may not decide it.
        RequestDecided: it was decided before, or has expired.
    """
    approval = _lock_waiting(request_id, actor)
    _decide(approval, ApprovalRequest.Status.REJECTED, decided_by=actor, reason=stated(reason))
    _log(approval, "rejected", actor=actor)


def _lock_waiting(request_id: int, actor: Any) -> ApprovalRequest:
    """Lock the request, so that the second of two concurrent decisions sees the first."""
    rows = ApprovalRequest.objects.select_for_update(of=("self",)).select_related("requested_by", "person")
    approval = rows.get(pk=request_id)
    if not ApprovalRequest.objects.waiting().filter(pk=approval.pk).exists():
        raise RequestDecided(became=state_of(approval))
    refusal = obstacle(approval, actor)
    if refusal is not None:
        raise refusal
    return approval


def state_of(approval: ApprovalRequest) -> str:
    """Return the state of a closed request in words; one that is still WAITING has expired."""
    if approval.status == ApprovalRequest.Status.WAITING:
        return "it expired undecided"
    return approval.get_status_display().lower()


def _carry_out(kind: Kind, approval: ApprovalRequest, *, decided_by: Any, reason: str) -> str:
    _check_day(kind, approval)
    approval.decided_by = decided_by
    done = kind.carry_out(approval)
    made = done.made or (None if approval.object_id or done.row == approval else done.row)
    _decide(approval, ApprovalRequest.Status.DONE, decided_by=decided_by, reason=reason, made=made)
    _log(approval, "carried out", actor=decided_by or approval.requested_by, row=done.row)
    return done.message


def _decide(
    approval: ApprovalRequest, status: str, *, decided_by: Any, reason: str, made: Model | None = None
) -> None:
    """Store the decision, by an update that matches only a waiting request."""
    waiting = ApprovalRequest.objects.filter(pk=approval.pk, status=ApprovalRequest.Status.WAITING)
    decided = waiting.update(
        status=status,
        decided_by_id=decided_by.pk if decided_by else None,
        decision_reason=reason,
        decided_at=Now(),
        made_type=ContentType.objects.get_for_model(made) if made else None,
        made_id=str(made.pk) if made else "",
    )
    if not decided:
        raise RequestDecided(became="it has already been decided")
    approval.refresh_from_db(
        fields=["status", "decided_by", "decision_reason", "decided_at", "made_type", "made_id"]
    )


def _log(approval: ApprovalRequest, stage: str, *, actor: Any, row: Model | None = None) -> None:
    """Log a stage of the request (asked, carried out, rejected); its entries share the request's id."""
    changes = {name: (str(before), str(after)) for name, (before, after) in approval.changes.items()}
    audit.record(
        actor=actor,
        row=approval if row is None or row.pk is None else row,
        action=f"{approval.kind} {stage}",
        reason=approval.decision_reason or approval.reason,
        changes=changes,
        approval={"request": approval.pk, "kind": approval.kind, "status": approval.status},
    )


# --- Waiting requests


def waits_for(actor: Any) -> Q:
    """Return the condition on requests that the actor may decide; costs one statement."""
    condition = Q(pk__in=[])
    for name, roles in decided_by(actor).items():
        condition |= Q(kind=name) & ~Q(requested_roles__contains=sorted(roles))
    return condition & ~Q(requested_by=actor)


class Waiting(NamedTuple):
    """The number of requests that wait for a second person, and the age of the oldest in seconds, or 0."""

    requests: int
    oldest_age: float


def waiting(actor: Any = None) -> Waiting:
    """Count the requests that wait for a decision: all, or those that the actor may decide."""
    requests = ApprovalRequest.objects.waiting()
    if actor is not None:
        requests = requests.filter(waits_for(actor))
    rows = requests.aggregate(count=Count("pk"), age=Now() - Min("created_at"))
    return Waiting(rows["count"], max(0.0, rows["age"].total_seconds()) if rows["age"] else 0.0)


@register
def _gauges() -> Iterator[Metric]:
    requests, oldest_age = waiting()
    yield gauge("approvals_waiting", "Staff requests that wait for a second person.", requests)
    yield gauge(
        "approvals_oldest_age_seconds",
        "Seconds since the oldest of them was made; 0 without one.",
        oldest_age,
    )
