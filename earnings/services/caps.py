"""
The caps on earnings: per event, per person and day, per network and day, and per day of all networks.

An earning that exceeds a cap is held until two people release it. A day is a UTC day. A day's rows are locked last,
after all accounts, so concurrent earnings never exceed a ceiling together.

A reversal returns nothing to a day's ceilings: credits can be spent before they are taken back, so a network that
credits and reverses in turn could otherwise exceed every ceiling. A person's own cap does not count credits that were
taken back in full, because the person owes them.
"""

import logging
from dataclasses import dataclass, field
from datetime import date, datetime, time

from django.conf import settings
from django.db.models import Q, Sum

from earnings.models import CAPS, AdNetwork, HoldReason, Postback, PostbackKind, PostbackState
from earnings.queries import COUNTS_OF_PERSON
from earnings.rules import COUNTED, are_often_reversed
from gateway.common import db
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.common.statements import Statements

logger = logging.getLogger(__name__)
_ALL = ""


class _Sql(Statements, file=__file__):
    lock: str
    open: str
    take: str


@dataclass
class History:
    """A person's credits of the day at the network, and the counts of earnings and reversals anywhere."""

    today: int = 0
    earnings: int = 0
    reversals: int = 0


def counts_today(credit: Postback, *, day: date) -> bool:
    """Return whether a credit counts towards the person's cap of that day."""
    is_given = credit.state in {PostbackState.AVAILABLE, PostbackState.HELD}
    return is_given and credit.hold_reason not in CAPS and credit.received_at.date() >= day


@dataclass
class Day:
    """The credits of a day, of all networks and of one; the caller's transaction has locked the rows."""

    day: date
    limits: dict[str, int]
    credits: dict[str, int]
    taken: int = field(default=0, init=False)

    def take(self, credits: int) -> str:
        """Take credits from both ceilings, or return which one they exceed."""
        exceeded = [
            scope
            for scope, limit in self.limits.items()
            if self.credits[scope] + self.taken + credits > limit
        ]
        if not credits or not exceeded:
            self.taken += credits
            return ""
        return HoldReason.DAILY_CEILING if _ALL in exceeded else HoldReason.NETWORK_SHARE

    def write(self) -> None:
        if self.taken:
            params = {"day": self.day, "scopes": list(self.limits), "taken": self.taken}
            db.all_rows(_Sql.take, params)


def hold_reason(credit: Postback, history: History, day: Day) -> str:
    """
    Return why a decided credit must be held beyond its network's hold time, or an empty text.

    Unless the reason is a cap, this takes the credits from the day's ceilings.
    """
    reason = _reason(credit, history, day)
    if reason in CAPS:
        logger.error("postback %s of %s is held: %s", credit.pk, credit.network, HoldReason(reason).label)
    return reason


def _reason(credit: Postback, history: History, day: Day) -> str:
    network = credit.network
    if credit.credits > min(network.per_event_cap, SAFE_INTEGER_MAX - 1):
        return HoldReason.EVENT_CAP
    if history.today + credit.credits > network.daily_cap:
        return HoldReason.PERSON_CAP
    if reached := day.take(credit.credits):
        return reached
    is_suspect = are_often_reversed(earnings=history.earnings, reversals=history.reversals)
    return HoldReason.REVERSALS if is_suspect else ""


def histories(postbacks: list[Postback]) -> dict[int, History]:
    """Return each user's history, for undecided postbacks of one network and time, which it does not include."""
    received_at, network = postbacks[0].received_at, postbacks[0].network
    midnight = datetime.combine(received_at.date(), time(), tzinfo=received_at.tzinfo)
    counted = Q(
        kind=PostbackKind.CREDIT,
        network=network,
        state__in=[PostbackState.AVAILABLE, PostbackState.HELD],
        received_at__gte=midnight,
    )
    users = {row.user_id for row in postbacks}
    recent = Postback.objects.filter(user__in=users, received_at__gte=received_at - COUNTED)
    totals = {
        "today": Sum("credits", filter=counted & ~Q(hold_reason__in=CAPS), default=0),
        **COUNTS_OF_PERSON,
    }
    others = recent.exclude(pk__in=[row.pk for row in postbacks]).order_by()
    rows = others.values("user_id").annotate(**totals).values_list("user_id", *totals)
    return {user_id: History(*counts) for user_id, *counts in rows if user_id}


def lock_day(network: AdNetwork, day: date) -> Day:
    """Lock the day's rows until the transaction ends, and return their credits."""
    limits = {_ALL: settings.EARNINGS_DAILY_CEILING, network.slug: network_ceiling()}
    params = {"day": day, "scopes": list(limits)}
    while not (rows := db.all_rows(_Sql.lock, params)):
        # Only the first earning of a day finds no rows.
        db.all_rows(_Sql.open, params)
    return Day(day, limits, dict(rows))


def network_ceiling() -> int:
    """Return the most credits that one network may give in a day."""
    return int(settings.EARNINGS_DAILY_CEILING * settings.EARNINGS_NETWORK_SHARE // 100)
