"""
Held credits are given when their time has come, unless they were reversed meanwhile; staff may decide before.

Those of a network that staff have paused wait until it is resumed: its reversals are refused meanwhile, too.
"""

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from credits.services import entries
from earnings.errors import EarningDecided
from earnings.models import Postback, PostbackState, Refusal
from earnings.services import posting, reversal
from gateway.common.db import try_advisory_lock, would_stop_all
from users.models import User

logger = logging.getLogger(__name__)
# A worker needs well under a minute for so many.
_BATCH = 1_000


@transaction.atomic(durable=True)
def release(*, postback_id: int, now: datetime) -> bool:
    """
    Give the credits of a held postback; False where they are not due, no longer held, or the network is paused.

    Raises:
        EarningDecided: it is nobody's, so it was never held.
    """
    user = _locked_owner(postback_id)
    # Read anew: the row may have been reversed or released before the account was ours.
    held = Postback.objects.select_related("network").filter(_due(now), pk=postback_id).first()
    if held is None:
        return False
    _give(held, user)
    return True


@transaction.atomic
def release_early(*, postback_id: int) -> Postback:
    """
    Give the credits of a held postback before their time, also while its network is paused. Joins a transaction.

    Raises:
        EarningDecided: it is not held, or no longer.
    """
    held, user = _held(postback_id)
    _give(held, user)
    return held


@transaction.atomic
def forfeit(*, postback_id: int) -> Postback:
    """
    Never give the credits of a held postback; its reversal will find nothing to take back. Joins a transaction.

    Raises:
        EarningDecided: it is not held, or no longer.
    """
    held, _ = _held(postback_id)
    held.state, held.refused_because = PostbackState.REFUSED, Refusal.FORFEITED
    held.save(update_fields=["state", "refused_because"])
    return held


def release_due(*, now: datetime) -> int:
    """
    Release what is due, oldest first; return how many. One sweep runs at a time and leaves the rest to the next.

    What cannot be released is logged and tried again by the next sweep; it does not keep the others back.
    """
    due = Postback.objects.filter(_due(now)).order_by("available_at", "pk")
    with try_advisory_lock("credits.release_due") as acquired:
        chosen = list(due.values_list("pk", flat=True)[:_BATCH]) if acquired else []
        return sum(_try_release(postback_id, now) for postback_id in chosen)


def _try_release(postback_id: int, now: datetime) -> bool:
    try:
        return release(postback_id=postback_id, now=now)
    except Exception as error:
        if would_stop_all(error):
            raise
        logger.exception("held postback %s cannot be released; the others go on", postback_id)
        return False


def _locked_owner(postback_id: int) -> User:
    found = Postback.objects.select_related("user").get(pk=postback_id)
    if found.user is None:  # A test, or news about nobody: such rows are never held.
        raise EarningDecided(state=found.get_state_display())
    entries.lock_account(user=found.user)
    return found.user


def _held(postback_id: int) -> tuple[Postback, User]:
    """Return the row, read under its account's lock, and whose it is."""
    user = _locked_owner(postback_id)
    found = Postback.objects.select_related("network").get(pk=postback_id)
    if found.state != PostbackState.HELD:
        raise EarningDecided(state=found.get_state_display())
    return found, user


def _give(held: Postback, user: User) -> None:
    posting.give(held, user, credits=reversal.left_of(held))
    held.save(update_fields=posting.DECIDED)


def _due(now: datetime) -> Q:
    return Q(state=PostbackState.HELD, available_at__lte=now, network__is_enabled=True)
