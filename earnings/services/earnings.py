"""
The effects of postbacks: credits are posted, held, released, forfeited and taken back.

Every decision is made under the lock of the user's account, which serialises a credit, its reversal and their repeats:
each sees everything that was committed before it. Older postbacks are changed only under that lock, so the lock order
is: own new row, account, older rows.
"""

import logging
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Q, QuerySet, Sum

from credits.models import CreditEntry, EntrySource
from credits.services import entries
from earnings.errors import EarningDecided
from earnings.models import CAPS, HoldReason, NetworkUser, Postback, PostbackKind, PostbackState, Refusal
from earnings.networks import ADAPTERS
from earnings.rules import REVERSED_HOLD
from earnings.services import caps
from earnings.states import Event, allows, apply, next_state
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.common.leases import try_lease
from gateway.common.sweeps import isolated
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import CREDITS, Done, Kind
from gateway.staff.models import ApprovalRequest
from rewards import queries
from rewards.models import BadgeTrack, ExperienceEntry
from rewards.rules import MODIFIER_TYPE_BY_SOURCE, earned_credits
from rewards.services import experience
from users.models import User

logger = logging.getLogger(__name__)
# The columns that a decision writes; the others never change.
_DECIDED = (
    "state", "refused_because", "hold_reason", "badge_bonus", "modifier_bonus", "credits", "entry", "available_at",
)  # fmt: skip
# A worker processes this many in well under a minute.
_RELEASE_BATCH = 1_000


def decide(postback: Postback, user: User | None) -> None:
    """Decide a newly stored postback with all its effects, and save it."""
    if postback.kind in {PostbackKind.INFO, PostbackKind.TEST} or (
        user is None and postback.kind == PostbackKind.PENDING
    ):
        apply(postback, Event.IGNORE)
    elif user is None:
        logger.error(
            "postback %s of %s names no user: staff can give it to a person", postback.pk, postback.network
        )
    else:
        entries.lock_account(user=user)
        _DECISIONS[PostbackKind(postback.kind)](postback, user)
    postback.save(update_fields=_DECIDED)


def _decide_announcement(postback: Postback, user: User) -> None:
    is_decided = _related(postback, PostbackKind.CREDIT, PostbackKind.REVERSAL).exists()
    apply(postback, Event.IGNORE if is_decided else Event.ANNOUNCE)


def _decide_credit(postback: Postback, user: User) -> None:
    source = ADAPTERS[postback.network.slug].kind
    benefits = queries.current_rewards(user=user, now=postback.received_at).benefits
    postback.badge_bonus = benefits.badge_bonuses[MODIFIER_TYPE_BY_SOURCE[source]]
    postback.modifier_bonus = benefits.modifier_bonuses[MODIFIER_TYPE_BY_SOURCE[source]]
    # The maximum for one event of any network.
    postback.credits = min(_worth(postback, postback.amount), SAFE_INTEGER_MAX)
    _close_announcements(postback, Event.CONFIRM)
    remaining = _apply_earlier_reversals(postback)
    if postback.state == PostbackState.REVERSED:
        return
    postback.hold_reason = caps.hold_reason(postback)
    hold = timedelta(hours=postback.network.hold_hours)
    if postback.hold_reason == HoldReason.REVERSALS:
        hold = max(hold, REVERSED_HOLD)
    if hold or postback.hold_reason:
        apply(postback, Event.HOLD)
        postback.available_at = None if postback.hold_reason in CAPS else postback.received_at + hold
    else:
        apply(postback, Event.POST)
        _post(postback, user, credits=remaining)


def _decide_reversal(reversal: Postback, user: User) -> None:
    _close_announcements(reversal, Event.REVERSE)
    credit = _related(reversal, PostbackKind.CREDIT).first()
    if credit is None:
        return
    if credit.user_id != reversal.user_id:
        _refuse_reversal(reversal)
    elif allows(credit, Event.REVERSE):
        _take_back(reversal, credit, user)
        Postback.objects.filter(pk=credit.pk).update(state=credit.state)
    else:
        apply(reversal, Event.IGNORE)


_DECISIONS = {
    PostbackKind.PENDING: _decide_announcement,
    PostbackKind.CREDIT: _decide_credit,
    PostbackKind.REVERSAL: _decide_reversal,
}


def _related(postback: Postback, *kinds: PostbackKind) -> QuerySet[Postback]:
    return Postback.objects.filter(network=postback.network, original_id=postback.original_id, kind__in=kinds)


def _close_announcements(postback: Postback, event: Event) -> None:
    announced = _related(postback, PostbackKind.PENDING).filter(
        user=postback.user_id, state=PostbackState.PENDING
    )
    announced.update(state=next_state(PostbackKind.PENDING, PostbackState.PENDING, event))


def _worth(credit: Postback, amount: Decimal) -> int:
    return earned_credits(amount=amount, rate=credit.rate, bonus=credit.badge_bonus + credit.modifier_bonus)


def _post(credit: Postback, user: User, *, credits: int) -> None:
    """Post credits and their experience. The caller holds the lock and saves."""
    if credits:
        source, key = ADAPTERS[credit.network.slug].kind, _entry_key(credit)
        credit.entry = entries.grant(user=user, credits=credits, source=source, key=key)
        experience.gain(user=user, track=BadgeTrack.PERMANENT, base=credits, key=key, cause=source)


def _entry_key(postback: Postback) -> str:
    return f"earning:{postback.network.slug}:{postback.external_id}"


# --- Reversals. Several may share one credit; each stores what it took, so a credit's remainder is its own credits
# minus theirs.


def _apply_earlier_reversals(credit: Postback) -> int:
    remaining = credit.credits
    waiting = _related(credit, PostbackKind.REVERSAL).filter(state=PostbackState.RECEIVED).order_by("pk")
    for reversal in waiting:
        if reversal.user_id == credit.user_id:
            remaining = _reduce(credit, reversal)
        else:
            _refuse_reversal(reversal)
        reversal.save(update_fields=["state", "refused_because", "credits"])
    return remaining


def _refuse_reversal(reversal: Postback) -> None:
    apply(reversal, Event.REFUSE)
    reversal.refused_because = Refusal.ANOTHERS_CREDIT
    logger.error(
        "a reversal of %s names another user than %s: nothing is taken back",
        reversal.network,
        reversal.original_id,
    )


def _take_back(reversal: Postback, credit: Postback, user: User) -> None:
    taken_before = _taken_from(credit)[0]
    _reduce(credit, reversal)
    if credit.entry_id is None or not reversal.credits:
        return
    # A prefix, because a network's id could end like a suffix of ours.
    key = f"reversed-{_entry_key(reversal)}"
    reversal.entry = entries.reverse(
        user=user, credits=reversal.credits, source=EntrySource.EARNING_REVERSAL, key=key
    )
    gained = ExperienceEntry.objects.get(key=_entry_key(credit)).amount
    posted = CreditEntry.objects.get(pk=credit.entry_id).amount
    # Credits taken before they were posted are not included.
    before = taken_before - (credit.credits - posted)
    # Proportional; the last reversal takes the whole remainder.
    lost = gained * (before + reversal.credits) // posted - gained * before // posted
    if lost:
        experience.take_back(
            user=user,
            track=BadgeTrack.PERMANENT,
            amount=lost,
            key=key,
            cause=EntrySource.EARNING_REVERSAL,
        )


def _reduce(credit: Postback, reversal: Postback) -> int:
    taken, amount_taken = _taken_from(credit)
    before, remaining, amount_left = credit.credits - taken, 0, Decimal(0)
    if reversal.takes_back is not None:
        amount_left = credit.amount - amount_taken - reversal.takes_back
    if amount_left > 0:
        remaining = min(before, _worth(credit, amount_left))
    # An earlier reversal may have taken everything.
    elif credit.state != PostbackState.REVERSED:
        apply(credit, Event.REVERSE)
    apply(reversal, Event.REVERSE)
    reversal.credits = before - remaining
    return remaining


def _taken_from(credit: Postback) -> tuple[int, Decimal]:
    """Return the total of earlier reversals: in credits, and in the network's own unit."""
    applied = _related(credit, PostbackKind.REVERSAL).filter(state=PostbackState.REVERSED)
    sums = applied.aggregate(credits=Sum("credits"), amount=Sum("takes_back"))
    return sums["credits"] or 0, sums["amount"] or Decimal(0)


# --- Held credits


@transaction.atomic(durable=True)
def release(*, postback_id: int, now: datetime) -> bool:
    """
    Post held credits; return False where they are not due or not held, or the network is paused.

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
    Request the release of held credits now. Within the limit of one person they are posted at once; never beyond a cap.

    A repeated key returns the first request.

    Raises:
        PermissionDenied, ReasonRequired, AboveCeiling, RequestConflict: see `approvals.ask`.
        EarningDecided: the postback is not held.
    """
    credit = Postback.objects.select_related("user").get(pk=postback_id)
    if not allows(credit, Event.RELEASE):
        raise EarningDecided(state=credit.get_state_display())
    left = credit.credits - _taken_from(credit)[0]
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
    credit.save(update_fields=["state", "refused_because"])


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
    _post(credit, user, credits=credit.credits - _taken_from(credit)[0])
    credit.save(update_fields=_DECIDED)


def _due(now: datetime) -> Q:
    return Q(state=PostbackState.HELD, available_at__lte=now, network__is_enabled=True)


def forget(user: User) -> None:
    """
    Delete the user's references and the networks' raw data; keep decisions and credits.

    A later reversal by a network finds no user.
    """
    NetworkUser.objects.filter(user=user).delete()
    Postback.objects.filter(user=user).update(raw=b"", headers={}, request_id="")
