"""
Held credits are given when their time has come, unless they were reversed meanwhile.

Those of a network that staff have paused wait until it is resumed: its reversals are not heard either.
"""

import logging
from datetime import datetime
from typing import cast

from billiard.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q

from credits.models import Postback, PostbackState
from credits.services import earnings_posting, earnings_reversal
from gateway.common.locks import try_advisory_lock
from gateway.common.owner import ProfileOwner

logger = logging.getLogger(__name__)
# So many take a worker well under a minute.
_BATCH = 1_000


@transaction.atomic(durable=True)
def release(*, postback_id: int, now: datetime) -> bool:
    """Give the credits of a held postback; False where they are not due, no longer held, or the network is paused."""
    seen = Postback.objects.select_related("user").get(pk=postback_id)
    user = cast("ProfileOwner", seen.user)
    earnings_posting.lock_account(user)
    # Read anew: the row may have been reversed or released before the account was ours.
    held = Postback.objects.select_related("network").filter(_due(now), pk=postback_id).first()
    if held is None:
        return False
    earnings_posting.give(held, user, credits=earnings_reversal.left_of(held))
    held.save(update_fields=earnings_posting.DECIDED)
    return True


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
    except (OperationalError, InterfaceError, SoftTimeLimitExceeded):
        # No database, or no time: the others would fare no better.
        raise
    except Exception:
        logger.exception("held postback %s cannot be released; the others go on", postback_id)
        return False


def _due(now: datetime) -> Q:
    return Q(state=PostbackState.HELD, available_at__lte=now, network__is_enabled=True)
