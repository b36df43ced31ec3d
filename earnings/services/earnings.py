"""
The effects of postbacks: credits are posted, held, released, forfeited and taken back.

Every decision is made under the lock of the user's account, which serialises a credit, its reversal and their repeats:
each sees everything that was committed before it. Older postbacks are changed only under that lock, so the lock order
is: own new rows, accounts, experience, the day's ceilings, older rows.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from credits.services import entries
from earnings.errors import EarningDecided
from earnings.models import NetworkUser, Postback, PostbackKind, PostbackState, Refusal
from earnings.networks import ADAPTERS
from earnings.queries import left_of
from earnings.services.books import entry_key, open_book, store
from earnings.services.decisions import decide
from earnings.states import Event, allows, apply
from gateway.common.leases import try_lease
from gateway.common.tasks import isolated
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import CREDITS, Done, Kind
from gateway.staff.models import ApprovalRequest
from rewards.models import BadgeTrack
from rewards.services import experience
from users.models import User

logger = logging.getLogger(__name__)
# The number to release in one sweep; a worker needs well under a minute for them.
_RELEASE_BATCH = 1_000


def decide_all(postbacks: Sequence[Postback]) -> None:
    """Decide newly stored postbacks of one network and time, in order, with all their effects; save them."""
    ignored, named = [], []
    for postback in postbacks:
        if postback.kind in {PostbackKind.INFO, PostbackKind.TEST} or (
            postback.user_id is None and postback.kind == PostbackKind.PENDING
        ):
            apply(postback, Event.IGNORE)
            ignored.append(postback)
        elif postback.user_id is None:
            logger.error(
                "postback %s of %s names no user: staff can give it to a person",
                postback.pk,
                postback.network,
            )
        else:
            named.append(postback)
    if ignored:
        store(ignored)
    if named:
        book = open_book(named)
        for postback in named:
            decide(postback, book)
        book.write()


# --- Held credits


@transaction.atomic(durable=True)
def release(*, postback_id: int, now: datetime) -> bool:
    """
    Post held credits; return False if they are not due or not held, or the network is paused.

    Raises:
        EarningDecided: the postback has no user.
    """
    user = _lock_owner(postback_id)
    # Read again under the lock: the row may have been reversed or released.
    credit = Postback.objects.select_related("network").filter(_due(now), pk=postback_id).first()
    if credit is None:
        return False
    _release(credit, user)
    return True


@transaction.atomic
def release_early(*, postback_id: int) -> Postback:
    """
    Post held credits before they are due, even while the network is paused. Joins the caller's transaction.

    Raises:
        EarningDecided: the postback is not held.
    """
    credit, user = _lock_held(postback_id, Event.RELEASE)
    _release(credit, user)
    return credit


def request_release(*, postback_id: int, actor: User, reason: str, key: str) -> ApprovalRequest:
    """
    Request the release of held credits. They are posted at once if within one person's limit and not held by a cap.

    A repeated key returns the first request.

    Raises:
        PermissionDenied, ReasonRequired, AboveCeiling, RequestConflict: see `approvals.ask`.
        EarningDecided: the postback is not held.
    """
    credit = Postback.objects.select_related("user").get(pk=postback_id)
    if not allows(credit, Event.RELEASE):
        raise EarningDecided(state=credit.get_state_display())
    left = _left(credit)
    return approvals.ask(
        kind=RELEASE if credit.available_at else RELEASE_BEYOND_CAP,
        actor=actor,
        reason=reason,
        key=key,
        row=credit,
        person=credit.user,
        amount=left,
        payload={},
        changes={
            "available_at": (str(credit.available_at or credit.get_hold_reason_display()), "now"),
            "credits": ("", f"{left:+d}"),
        },
    )


def _carry_out(approval: ApprovalRequest) -> Done:
    credit = release_early(postback_id=int(approval.object_id))
    return Done(f"{credit.entry.amount if credit.entry else 0} credits were posted.", credit, credit.entry)


RELEASE = approval_kinds.register(
    Kind(
        name="release_early",
        title="Release a held earning early",
        asks="earnings.decide_earning",
        decides="earnings.decide_release",
        pool=CREDITS,
        carry_out=_carry_out,
    )
)
RELEASE_BEYOND_CAP = approval_kinds.register(
    Kind(
        name="release_beyond_cap",
        title="Release an earning beyond a cap",
        asks="earnings.decide_earning",
        decides="earnings.decide_release",
        pool=CREDITS,
        always_waits=True,
        carry_out=_carry_out,
    )
)


@transaction.atomic
def forfeit(*, postback_id: int) -> None:
    """
    Forfeit held credits; a later reversal takes nothing back. Joins the caller's transaction.

    Raises:
        EarningDecided: the postback is not held.
    """
    credit, _ = _lock_held(postback_id, Event.FORFEIT)
    apply(credit, Event.FORFEIT)
    credit.refused_because = Refusal.FORFEITED
    _save(credit, state=credit.state, refused_because=credit.refused_because)


def release_due(*, now: datetime) -> int:
    """
    Release due credits, oldest first; return how many. One sweep runs at a time; the next one continues.

    Held credits of a paused network wait until it is resumed, because its reversals are refused meanwhile. A credit
    that cannot be released is logged and retried by the next sweep; it does not delay the others.
    """
    due = Postback.objects.filter(_due(now)).order_by("available_at", "pk")
    with try_lease("earnings.release_due") as acquired:
        ids = list(due.values_list("pk", flat=True)[:_RELEASE_BATCH]) if acquired else []
        return sum(_try_release(postback_id, now) for postback_id in ids)


def _try_release(postback_id: int, now: datetime) -> bool:
    with isolated(f"the release of postback {postback_id}"):
        return release(postback_id=postback_id, now=now)
    return False


def _lock_owner(postback_id: int) -> User:
    postback = Postback.objects.select_related("user").get(pk=postback_id)
    if postback.user is None:  # Tests and information without a user are never held.
        raise EarningDecided(state=postback.get_state_display())
    entries.lock_account(user=postback.user)
    return postback.user


def _lock_held(postback_id: int, event: Event) -> tuple[Postback, User]:
    """Return the postback, read under its account's lock, and its user, if the transition is still allowed."""
    user = _lock_owner(postback_id)
    credit = Postback.objects.select_related("network").get(pk=postback_id)
    if not allows(credit, event):
        raise EarningDecided(state=credit.get_state_display())
    return credit, user


def _release(credit: Postback, user: User) -> None:
    apply(credit, Event.RELEASE)
    if left := _left(credit):
        source, key = ADAPTERS[credit.network.slug].kind, entry_key(credit)
        credit.entry = entries.grant(user=user, credits=left, source=source, key=key)
        experience.gain(user=user, track=BadgeTrack.PERMANENT, base=left, key=key, cause=source)
    _save(credit, state=credit.state, entry=credit.entry)


def _save(credit: Postback, **decided: Any) -> None:
    Postback.objects.filter(pk=credit.pk).update(**decided, decided_at=Now())


def _left(credit: Postback) -> int:
    return left_of(Postback.objects.filter(pk=credit.pk)).get().left


def _due(now: datetime) -> Q:
    return Q(state=PostbackState.HELD, available_at__lte=now, network__is_enabled=True)


def forget(user: User) -> None:
    """
    Delete the user's references and the networks' raw data; keep decisions and credits.

    A later reversal by a network finds no user.
    """
    NetworkUser.objects.filter(user=user).delete()
    Postback.objects.filter(user=user).update(raw=b"", headers={}, request_id="")
