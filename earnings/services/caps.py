"""
The caps on earnings: per event, per person and day, per network and day, and per day of all networks.

What exceeds one is held, and two people release it. A day is a UTC day. A day's credits are taken from its rows by one
conditional update, so simultaneous earnings never exceed a ceiling together; a reversal returns nothing to them. The
rows are locked last, after the account.
"""

import logging
from datetime import datetime, time
from typing import Any

from django.conf import settings
from django.db.models import Q, Sum

from earnings.models import CAPS, DailyEarnings, HoldReason, Postback, PostbackKind, PostbackState
from earnings.queries import COUNTS_OF_PERSON
from earnings.rules import COUNTED, are_often_reversed
from gateway.common import db
from gateway.common.fields import SAFE_INTEGER_MAX

logger = logging.getLogger(__name__)
_ALL = ""


def hold_reason(credit: Postback) -> str:
    """
    Return why a decided credit must be held, beyond its network's hold time, or an empty text.

    The caller holds the account's lock. Without a reason that is a cap, the credits are taken from the day's ceilings.
    """
    reason = _reason(credit)
    if reason in CAPS:
        logger.error("postback %s of %s is held: %s", credit.pk, credit.network, HoldReason(reason).label)
    return reason


def _reason(credit: Postback) -> str:
    network = credit.network
    if credit.credits > min(network.per_event_cap, SAFE_INTEGER_MAX - 1):
        return HoldReason.EVENT_CAP
    history = _history(credit)
    if (history["today"] or 0) + credit.credits > network.daily_cap:
        return HoldReason.PERSON_CAP
    if reached := _take_from_day(credit):
        return reached
    is_suspect = are_often_reversed(earnings=history["earnings"], reversals=history["reversals"])
    return HoldReason.REVERSALS if is_suspect else ""


def _history(credit: Postback) -> dict[str, Any]:
    """Return the person's credits of that day at the network, and counts of earnings and reversals anywhere."""
    midnight = datetime.combine(credit.received_at.date(), time(), tzinfo=credit.received_at.tzinfo)
    counted = Q(
        kind=PostbackKind.CREDIT,
        network=credit.network,
        state__in=[PostbackState.AVAILABLE, PostbackState.HELD],
        received_at__gte=midnight,
    )
    recent = Postback.objects.filter(user=credit.user_id, received_at__gte=credit.received_at - COUNTED)
    return recent.exclude(pk=credit.pk).aggregate(
        today=Sum("credits", filter=counted & ~Q(hold_reason__in=CAPS)),
        **COUNTS_OF_PERSON,
    )


def _take_from_day(credit: Postback) -> str:
    """Take the credits from the day's ceilings, or return which one they exceed."""
    if not credit.credits:
        return ""
    day, network = credit.received_at.date(), credit.network.slug
    limits = {_ALL: settings.EARNINGS_DAILY_CEILING, network: network_ceiling()}
    rows = [DailyEarnings(day=day, scope=scope, credits=0) for scope in sorted(limits)]
    params = {
        "day": day,
        "credits": credit.credits,
        "scopes": list(limits),
        "limits": list(limits.values()),
    }
    while not (taken := db.all_rows(_TAKE, params)):
        # Only the first earning of a day finds no rows.
        DailyEarnings.objects.bulk_create(rows, ignore_conflicts=True)
    exceeded = [scope for scope, fits in taken if not fits]
    if not exceeded:
        return ""
    return HoldReason.DAILY_CEILING if _ALL in exceeded else HoldReason.NETWORK_SHARE


def network_ceiling() -> int:
    """Return the credits of a day that one network takes at most."""
    return int(settings.EARNINGS_DAILY_CEILING * settings.EARNINGS_NETWORK_SHARE // 100)


# Lock the rows of all scopes in order, and add to all of them or to none. A row for each scope: whether it fits.
# If a row is missing, nothing is locked or returned, because its insert may wait for another transaction.
_TAKE = """
WITH ceiling AS (
    SELECT * FROM unnest(%(scopes)s::text[], %(limits)s::bigint[]) AS ceiling (scope, most)
), locked AS (
    SELECT day.id, day.scope, day.credits, day.credits + %(credits)s <= ceiling.most AS fits
    FROM earnings_daily AS day JOIN ceiling USING (scope)
    WHERE day.day = %(day)s AND cardinality(%(scopes)s) = (
        SELECT count(*) FROM earnings_daily AS row WHERE row.day = %(day)s AND row.scope = ANY(%(scopes)s)
    )
    ORDER BY day.scope FOR NO KEY UPDATE OF day
), taken AS (
    UPDATE earnings_daily AS day SET credits = locked.credits + %(credits)s
    FROM locked
    WHERE day.id = locked.id AND (SELECT bool_and(fits) FROM locked)
)
SELECT scope, fits FROM locked
"""
