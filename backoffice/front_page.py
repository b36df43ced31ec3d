"""
The admin's front page: the service's key figures, each with a link to its rows.

The figures are cached briefly, because they sum up a month.
"""

import dataclasses
import json
import logging
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.http import HttpRequest
from django.urls import reverse
from redis.exceptions import RedisError

from backoffice import figures, reconciliation
from backoffice.cards import Card, columns, in_largest_unit, rows_of, shares
from credits import queries as credits_queries
from earnings import queries as earnings_queries
from gateway.admin.columns import word_of
from gateway.chain.config import chain_of, chains, home, on_chain
from gateway.common import clock
from gateway.staff import approvals, pauses
from payments import queries as payments_queries
from relay.models import RelayTransaction
from relay.queries.figures import relay_counts
from relay.services.fleet import losses as relay_losses

logger = logging.getLogger(__name__)
# Sums reveal rows, so the figures need permission to view all of these.
FIGURES_NEED = ("credits.view_creditaccount", "relay.view_relaytransaction", "payments.view_payout")
_DAY, _WEEK, _MONTH = timedelta(days=1), timedelta(days=7), timedelta(days=30)
_FEW_DAYS, _YEAR_DAYS = 7, 365
# A queue is late after the first time, and a person's decision after the second.
_LATE_SECONDS, _UNDECIDED_SECONDS = 5 * 60, 24 * 3600
# The series of a column of calls, from the bottom up.
_SERIES = ("succeeded", "unsuccessful", "waiting")


def fill(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add the figures to the front page of users with the permissions; the theme calls this."""
    may_look = request.user.has_perms(FIGURES_NEED)
    shown = cached_figures(now=clock.now()) if may_look else {}
    return {**context, "has_search_box": True, **shown, **_needs_attention(request)}


def _needs_attention(request: HttpRequest) -> dict[str, Any]:
    """Return the uncached part: pauses, and requests that wait for this person's decision."""
    if not request.user.has_perm("gateway_admin.view_pause"):
        return {}
    mine = approvals.waiting(request.user)
    return {
        "paused": [
            {"title": pauses.pausable[decision.name], "decision": decision} for decision in pauses.paused()
        ],
        "decisions": {
            "count": mine.requests,
            "age": in_largest_unit(mine.oldest_age),
            "link": rows_of("gateway_admin_approvalrequest", state="mine"),
        }
        if mine.requests
        else None,
    }


def page_figures(*, now: datetime) -> dict[str, Any]:
    """Return all figures of the front page, in a fixed number of statements."""
    outcomes = figures.outcomes(since=now - _DAY)
    by_hour = _columns(figures.hours(since=now - _DAY), now)
    # The same counts as /metrics.
    ledger = credits_queries.ledger_counts()
    cards = {
        "relay_cards": _relay_cards(outcomes, now),
        "money_cards": _money_cards(ledger, now),
        "books_cards": reconciliation.cards(),
        "trouble_cards": _trouble_cards(ledger, now),
    }
    return {
        **cards,
        "alarms": [card for part in cards.values() for card in part if card.is_alarming],
        "relayers": [_relayer(row) for row in figures.relayers(now=now)],
        "calls_by_hour": columns(by_hour, _SERIES),
        "earned_by_source": shares(_in_words(figures.earned_by_source(since=now - _MONTH))),
        "links": {
            "relayers": rows_of("relay_relayer"),
            "calls": rows_of("relay_relaytransaction", created_at__gte=_iso(now - _DAY)),
            "entries": rows_of("credits_creditentry", created_at__gte=_iso(now - _MONTH)),
        },
    }


def _relay_cards(outcomes: figures.Outcomes, now: datetime) -> list[Card]:
    since = _iso(now - _DAY)
    margin = figures.margin(since=now - _WEEK)
    losses = relay_losses.usage(now=now)
    rate = outcomes.success_rate
    by_status = [
        Card(
            title=word_of(status, str(status.label)),
            value=f"{outcomes.by_status.get(status, 0):,}",
            detail="calls in 24 hours",
            link=rows_of("relay_relaytransaction", status__exact=status.value, created_at__gte=since),
        )
        for status in RelayTransaction.Status
    ]
    return [
        Card(
            title="Success rate",
            value=f"{rate:.1%}" if rate is not None else "—",
            detail="of the calls accepted in 24 hours that have ended",
            link=rows_of("relay_relaytransaction", created_at__gte=since),
            is_alarming=rate is not None and rate < Decimal("0.95"),
        ),
        Card(
            title="Time to inclusion",
            value=_seconds(outcomes.median_seconds),
            detail=f"median; 95 % within {_seconds(outcomes.slow_seconds)}",
            link=rows_of("relay_attempt", status__exact="mined"),
        ),
        Card(
            title="Margin",
            value=_coins(margin.gained_wei),
            detail=f"{_coins(margin.captured_wei)} captured, {_coins(margin.spent_wei)} spent on gas in 7 days",
            link=rows_of("credits_creditentry", source__exact="RELAY_TRANSACTION"),
            is_alarming=margin.gained_wei < 0,
        ),
        Card(
            title="Losses",
            value=_coins(losses.lost_wei),
            detail=f"in the last hour; {_coins(losses.reserved_wei)} in flight; limit {_coins(losses.limit_wei)}",
            link=rows_of("relay_loss"),
            is_alarming=losses.is_used_up,
        ),
        *by_status,
    ]


def _money_cards(ledger: credits_queries.LedgerCounts, now: datetime) -> list[Card]:
    outstanding = Card(
        title="Credits outstanding",
        value=f"{ledger.owned:,}",
        detail=f"on {ledger.accounts:,} accounts; {ledger.held:,} held, {ledger.owed:,} owed to us",
        link=rows_of("credits_creditaccount"),
    )
    payouts = [
        Card(
            title=f"Payouts in {paid.currency.upper()}",
            value=f"{Decimal(paid.amount_minor) / 100:,.2f}",
            detail=f"{_count(paid.payouts, 'payment')} paid out as {paid.credits:,} credits in 30 days",
            link=rows_of("payments_payout", currency__exact=paid.currency),
        )
        for paid in figures.paid_out(since=now - _MONTH)
    ]
    return [outstanding, *payouts]


def _trouble_cards(ledger: credits_queries.LedgerCounts, now: datetime) -> list[Card]:
    payments, earnings = payments_queries.payment_counts(), earnings_queries.postback_counts()
    received = _iso(now - _DAY)
    return [
        Card(
            title="Failed Stripe events",
            value=f"{payments.failed_events:,}",
            detail="retried with exponential backoff",
            link=rows_of("payments_stripeevent", status__exact="failed"),
            is_alarming=payments.failed_events > 0,
        ),
        Card(
            title="Refused postbacks",
            value=f"{earnings.refused:,}",
            detail="in 24 hours; see each row's reason",
            link=rows_of("earnings_postback", state__exact="REFUSED", received_at__gte=received),
        ),
        Card(
            title="Conflicting postbacks",
            value=f"{earnings.conflicting:,}",
            detail="duplicates with other content in 24 hours",
            link=rows_of("earnings_postback", conflicted_at__gte=received),
            is_alarming=earnings.conflicting > 0,
        ),
        Card(
            title="Earnings beyond a cap",
            value=f"{earnings.beyond_cap:,}",
            detail="held until two people release them",
            link=rows_of("earnings_postback", available_at__isnull="1", state__exact="HELD"),
            is_alarming=earnings.beyond_cap > 0,
        ),
        Card(
            title="Earnings without a user",
            value=f"{earnings.unassigned:,}",
            detail="signed, without a user's reference",
            link=rows_of("earnings_postback", state__exact="UNASSIGNED"),
            is_alarming=earnings.unassigned > 0,
        ),
        *_waiting_cards(ledger, earnings, payments),
    ]


def _waiting_cards(
    ledger: credits_queries.LedgerCounts,
    earnings: earnings_queries.PostbackCounts,
    payments: payments_queries.PaymentCounts,
) -> list[Card]:
    unsent_age = max(_unsent_age(chain.id) for chain in chains())
    return [
        _waiting(
            "Requests waiting for a second person",
            approvals.waiting().oldest_age,
            rows_of("gateway_admin_approvalrequest"),
            late=_UNDECIDED_SECONDS,
        ),
        _waiting("Calls waiting for broadcast", unsent_age, rows_of("relay_attempt", status__exact="signed")),
        _waiting(
            "Stripe events waiting",
            payments.oldest_event_age,
            rows_of("payments_stripeevent", status__in="received,failed"),
        ),
        _waiting(
            "Held earnings due", earnings.overdue_age, rows_of("earnings_postback", state__exact="HELD")
        ),
        _waiting(
            "Open billing operations",
            payments.oldest_operation_age,
            rows_of("payments_billingoperation", status__exact="pending"),
        ),
    ]


def _waiting(title: str, seconds: float, link: str, *, late: int = _LATE_SECONDS) -> Card:
    """Return the card of a queue; `seconds` is the age of its oldest row, 0 if it is empty."""
    return Card(
        title=title,
        value=in_largest_unit(seconds) if seconds else "none",
        detail="age of the oldest",
        link=link,
        is_alarming=seconds > late,
    )


def _in_words(by_source: dict[str, int]) -> dict[str, int]:
    return {word_of(source): amount for source, amount in by_source.items()}


def _columns(hours: list[figures.Hour], now: datetime) -> list[tuple[str, dict[str, int]]]:
    by_begin = {hour.begins_at: hour for hour in hours}
    newest = now.replace(minute=0, second=0, microsecond=0)
    shown = []
    for age in range(24, -1, -1):
        begins_at = newest - timedelta(hours=age)
        hour = by_begin.get(begins_at)
        shown.append(
            (f"{begins_at:%d %b %H:%M} UTC", dict(zip(_SERIES, hour[1:], strict=True)) if hour else {})
        )
    return shown


def _unsent_age(chain_id: int) -> float:
    with on_chain(chain_id):
        return relay_counts().unsent_age


def _relayer(row: figures.RelayerFigures) -> dict[str, object]:
    relayer, days = row.relayer, row.days_left
    return {
        "address": relayer.address,
        "page": reverse("admin:relay_relayer_change", args=[relayer.pk]),
        "state": relayer.state,
        "balance": chain_of(relayer.chain_id).amount(relayer.balance_wei, places=4),
        "lasts": _days(days),
        "is_low": days is not None and days < _FEW_DAYS,
    }


def _days(days: Decimal | None) -> str:
    """Return in words how long a balance lasts at the spending rate of the last week."""
    if days is None:
        return "nothing spent"
    if days > _YEAR_DAYS:
        return "more than a year"
    return f"{days:,.1f} days" if days <= _FEW_DAYS else f"{days:,.0f} days"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _seconds(value: float | None) -> str:
    return "—" if value is None else f"{value:.1f} s"


def _coins(wei: int) -> str:
    return home().amount(wei, places=6)


# Increment this when the shape changes: a release must not read figures cached by the previous one.
_KEY = "staff:figures:4"


def cached_figures(*, now: datetime) -> dict[str, Any]:
    """
    Return the result of `page_figures`, cached for `STAFF_FIGURES_SECONDS`, as plain values, with `as_of`.

    While the cache is unavailable, the figures are computed each time, which only makes the page slower.
    """
    cached = _from_cache()
    if cached is not None:
        return cached
    computed = {**page_figures(now=now), "as_of": f"{now:%H:%M:%S} UTC"}
    # Converted to the form that the cache returns, so that the page always gets the same form.
    plain: dict[str, Any] = json.loads(json.dumps(computed, default=dataclasses.asdict))
    _cache(plain)
    return plain


def _from_cache() -> dict[str, Any] | None:
    if not settings.STAFF_FIGURES_SECONDS:
        return None
    try:
        cached: dict[str, Any] | None = caches["figures"].get(_KEY)
    except RedisError as error:
        logger.warning("the cached figures cannot be read: %s", type(error).__name__)
        return None
    return cached


def _cache(values: dict[str, Any]) -> None:
    if not settings.STAFF_FIGURES_SECONDS:
        return
    try:
        caches["figures"].set(_KEY, values, timeout=settings.STAFF_FIGURES_SECONDS)
    except RedisError as error:
        logger.warning("the figures cannot be cached: %s", type(error).__name__)
