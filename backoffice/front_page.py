"""
The front page of the admin: how the service does, each figure with a link to the rows behind it.

Figures that are cached for a short while: they sum a month, and nobody needs them to the second.
"""

import dataclasses
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from redis.exceptions import RedisError

from backoffice import cards as backoffice_cards
from backoffice import figures as backoffice_figures
from backoffice import reconciliation
from backoffice.cards import Card, in_largest_unit, rows_of
from credits import queries as credits_queries
from earnings import queries as earnings_queries
from gateway.chain.config import get_chain
from payments import queries as payments_queries
from relay import queries as relay_queries
from relay.models import RelayTransaction

# Sums reveal rows: only those who may look at all of these are shown the figures.
FIGURES_NEED = ("credits.view_creditaccount", "relay.view_relaytransaction", "payments.view_payout")
_DAY, _WEEK, _MONTH = timedelta(days=1), timedelta(days=7), timedelta(days=30)
_FEW_DAYS = 7
_LATE_SECONDS = 5 * 60


@dataclass(frozen=True, kw_only=True)
class RelayerLine:
    """A relayer in words: where its page is, what it holds, for how long that lasts, and whether that is short."""

    address: str
    page: str
    state: str
    balance: str
    lasts: str
    is_low: bool


def fill(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add the figures to the front page of those who may see such rows; the theme calls this."""
    may_look = all(request.user.has_perm(permission) for permission in FIGURES_NEED)
    found = cached_figures(figures, now=timezone.now()) if may_look else {}
    return {**context, "has_search_box": True, **found}


def figures(*, now: datetime) -> dict[str, Any]:
    """Return everything that the front page shows, in a fixed number of statements."""
    outcomes = backoffice_figures.outcomes(since=now - _DAY)
    by_hour = _columns(backoffice_figures.hours(since=now - _DAY), now)
    # The figures of /metrics, so that both agree.
    ledger = credits_queries.figures()
    return {
        "relay_cards": _relay_cards(outcomes, now),
        "relayers": [_line(relayer) for relayer in backoffice_figures.relayers(now=now)],
        "money_cards": _money_cards(ledger, now),
        "books_cards": reconciliation.cards(),
        "trouble_cards": _trouble_cards(ledger, now),
        "calls_by_hour": backoffice_cards.stacked_bars(by_hour),
        "calls_range": _range(by_hour),
        "earned_by_source": backoffice_cards.shares(backoffice_figures.earned_by_source(since=now - _MONTH)),
        "links": {
            "relayers": rows_of("relay_relayer"),
            "calls": rows_of("relay_relaytransaction", created_at__gte=_iso(now - _DAY)),
            "entries": rows_of("credits_creditentry", created_at__gte=_iso(now - _MONTH)),
        },
    }


def _relay_cards(outcomes: backoffice_figures.Outcomes, now: datetime) -> list[Card]:
    since = _iso(now - _DAY)
    margin = backoffice_figures.margin(since=now - _WEEK)
    rate = outcomes.success_rate
    by_status = [
        Card(
            title=str(status.label),
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
            detail=f"median; 95 of 100 within {_seconds(outcomes.slow_seconds)}",
            link=rows_of("relay_attempt", status__exact="mined"),
        ),
        Card(
            title="Margin",
            value=_coins(margin.gained_wei),
            detail=f"{_coins(margin.captured_wei)} captured, {_coins(margin.spent_wei)} spent on gas in 7 days",
            link=rows_of("credits_creditentry", source__exact="RELAY_TRANSACTION"),
            is_alarming=margin.gained_wei < 0,
        ),
        *by_status,
    ]


def _money_cards(ledger: credits_queries.Figures, now: datetime) -> list[Card]:
    cards = [
        Card(
            title="Credits outstanding",
            value=f"{ledger.owned:,}",
            detail=f"on {ledger.accounts:,} accounts; {ledger.held:,} held, {ledger.owed:,} owed to us",
            link=rows_of("credits_creditaccount"),
        )
    ]
    cards += [
        Card(
            title=f"Payouts in {paid.currency.upper()}",
            value=f"{Decimal(paid.amount_minor) / 100:,.2f}",
            detail=f"{_count(paid.payouts, 'month')} paid out as {paid.credits:,} credits in 30 days",
            link=rows_of("payments_payout", currency__exact=paid.currency),
        )
        for paid in backoffice_figures.paid_out(since=now - _MONTH)
    ]
    return cards


def _trouble_cards(ledger: credits_queries.Figures, now: datetime) -> list[Card]:
    payments, earnings = payments_queries.figures(), earnings_queries.postback_figures()
    received = _iso(now - _DAY)
    return [
        Card(
            title="Failed Stripe events",
            value=f"{payments.failed_events:,}",
            detail="retried with growing patience",
            link=rows_of("payments_stripeevent", status__exact="failed"),
            is_alarming=payments.failed_events > 0,
        ),
        Card(
            title="Refused postbacks",
            value=f"{earnings.refused:,}",
            detail="in 24 hours; each row says why",
            link=rows_of("earnings_postback", state__exact="REFUSED", received_at__gte=received),
        ),
        Card(
            title="Contradicting postbacks",
            value=f"{earnings.conflicting:,}",
            detail="came again in 24 hours, saying something else",
            link=rows_of("earnings_postback", is_conflicting__exact="1", received_at__gte=received),
            is_alarming=earnings.conflicting > 0,
        ),
        *_waiting_cards(ledger, earnings, payments),
    ]


def _waiting_cards(
    ledger: credits_queries.Figures,
    earnings: earnings_queries.PostbackFigures,
    payments: payments_queries.Figures,
) -> list[Card]:
    unsent_age = relay_queries.figures().unsent_age
    return [
        _waiting("Waits for broadcast", unsent_age, rows_of("relay_attempt", status__exact="signed")),
        _waiting(
            "Stripe event waits",
            payments.oldest_event_age,
            rows_of("payments_stripeevent", status__in="received,failed"),
        ),
        _waiting(
            "Held earning is due", earnings.overdue_age, rows_of("earnings_postback", state__exact="HELD")
        ),
        _waiting(
            "Billing operation is open",
            payments.oldest_operation_age,
            rows_of("payments_billingoperation", status__exact="pending"),
        ),
    ]


def _waiting(title: str, seconds: float, link: str) -> Card:
    """Return the card of a queue whose oldest row has waited for so many seconds; 0 where nothing waits."""
    return Card(
        title=title,
        value=in_largest_unit(seconds) if seconds else "nothing",
        detail="age of the oldest",
        link=link,
        is_alarming=seconds > _LATE_SECONDS,
    )


def _columns(hours: list[backoffice_figures.Hour], now: datetime) -> list[tuple[str, dict[str, int]]]:
    known = {hour.begins_at: hour for hour in hours}
    newest = now.replace(minute=0, second=0, microsecond=0)
    columns = []
    for age in range(24, -1, -1):
        begins_at = newest - timedelta(hours=age)
        hour = known.get(begins_at)
        parts = (
            {"succeeded": hour.succeeded, "unsuccessful": hour.unsuccessful, "waiting": hour.waiting}
            if hour
            else {}
        )
        columns.append((f"{begins_at:%H:%M} UTC", parts))
    return columns


def _line(found: backoffice_figures.RelayerFigures) -> RelayerLine:
    days = found.days_left
    return RelayerLine(
        address=found.relayer.address,
        page=reverse("admin:relay_relayer_change", args=[found.relayer.pk]),
        state="active" if found.relayer.is_active else "paused",
        balance=get_chain().amount(found.relayer.balance_wei, places=4),
        lasts="nothing spent" if days is None else f"{days:,.1f} days",
        is_low=days is not None and days < _FEW_DAYS,
    )


def _range(columns: list[tuple[str, dict[str, int]]]) -> str:
    """Say what the columns span and how tall they are, for those who cannot point at them."""
    most = max(sum(parts.values()) for _, parts in columns)
    return f"From {columns[0][0]} yesterday to {columns[-1][0]}, hour by hour; at most {_count(most, 'call')} in one."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _seconds(value: float | None) -> str:
    return "—" if value is None else f"{value:.1f} s"


def _coins(wei: int) -> str:
    return get_chain().amount(wei, places=6)


logger = logging.getLogger(__name__)

# Change the number when the shape changes: a release must not read figures of the one before.
_KEY = "staff:figures:2"


def cached_figures(compute: Callable[..., dict[str, Any]], *, now: datetime) -> dict[str, Any]:
    """
    Return what `compute(now=…)` last said within `STAFF_FIGURES_SECONDS`, as plain values, with `as_of`.

    Without the cache they are computed anew, so the page only takes longer.
    """
    known = _recall()
    if known is None:
        known = _plain({**compute(now=now), "as_of": f"{now:%H:%M:%S} UTC"})
        _remember(known)
    return known


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """Return the figures as they come back from the cache, so that a page never sees the difference."""
    plain: dict[str, Any] = json.loads(json.dumps(found, default=dataclasses.asdict))
    return plain


def _recall() -> dict[str, Any] | None:
    if not settings.STAFF_FIGURES_SECONDS:
        return None
    try:
        known: dict[str, Any] | None = caches["figures"].get(_KEY)
    except RedisError as error:
        logger.warning("the figures cannot be recalled: %s", type(error).__name__)
        return None
    return known


def _remember(found: dict[str, Any]) -> None:
    if not settings.STAFF_FIGURES_SECONDS:
        return
    try:
        caches["figures"].set(_KEY, found, timeout=settings.STAFF_FIGURES_SECONDS)
    except RedisError as error:
        logger.warning("the figures cannot be remembered: %s", type(error).__name__)
