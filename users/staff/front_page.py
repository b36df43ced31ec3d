"""The front page of the admin: how the service does, each figure with a link to the rows behind it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from relay.models import RelayTransaction
from users.staff import books, charts, money_figures, relay_figures, remembered
from users.staff.cards import Card, age_of, rows_of

# Sums tell of rows: who may look at none of these is shown none of the figures.
FIGURES_NEED = ("credits.view_creditaccount", "relay.view_relaytransaction", "payments.view_payout")
_DAY, _WEEK, _MONTH = timedelta(days=1), timedelta(days=7), timedelta(days=30)
_WEI_PER_NATIVE_COIN = Decimal(10**18)
_FEW_DAYS = 7
_LATE = timedelta(minutes=5)
_PENDING = {"status__exact": "pending"}


@dataclass(frozen=True, kw_only=True)
class PurseLine:
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
    found = remembered.figures(figures, now=timezone.now()) if may_look else {}
    return {**context, "has_search_box": True, **found}


def figures(*, now: datetime) -> dict[str, Any]:
    """Return everything that the front page shows, in a fixed number of statements."""
    outcomes = relay_figures.outcomes(since=now - _DAY)
    by_hour = _columns(relay_figures.hours(since=now - _DAY), now)
    return {
        "relay_cards": _relay_cards(outcomes, now),
        "purses": [_line(purse) for purse in relay_figures.purses(now=now)],
        "money_cards": _money_cards(now),
        "books_cards": books.cards(),
        "trouble_cards": _trouble_cards(now),
        "calls_by_hour": charts.stacked_bars(by_hour),
        "calls_range": _range(by_hour),
        "earned_by_source": charts.shares(money_figures.earned_by_source(since=now - _MONTH)),
        "links": {
            "relayers": rows_of("relay_relayer"),
            "calls": rows_of("relay_relaytransaction", created_at__gte=_iso(now - _DAY)),
            "entries": rows_of("credits_creditentry", created_at__gte=_iso(now - _MONTH)),
        },
    }


def _relay_cards(outcomes: relay_figures.Outcomes, now: datetime) -> list[Card]:
    since = _iso(now - _DAY)
    margin = relay_figures.margin(since=now - _WEEK)
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
            detail="of the calls that ended in 24 hours",
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
            value=f"{_coins(margin.gained_wei)}",
            detail=f"{_coins(margin.captured_wei)} captured, {_coins(margin.spent_wei)} spent on gas in 7 days",
            link=rows_of("credits_creditentry", source__exact="RELAY_TRANSACTION"),
            is_alarming=margin.gained_wei < 0,
        ),
        *by_status,
    ]


def _money_cards(now: datetime) -> list[Card]:
    owed = money_figures.outstanding()
    cards = [
        Card(
            title="Credits outstanding",
            value=f"{owed.owned:,}",
            detail=f"on {owed.accounts:,} accounts; {owed.held:,} held, {owed.owed:,} owed to us",
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
        for paid in money_figures.paid_out(since=now - _MONTH)
    ]
    return cards


def _trouble_cards(now: datetime) -> list[Card]:
    found = money_figures.troubles(since=now - _DAY, now=now)
    received = _iso(now - _DAY)
    return [
        Card(
            title="Failed Stripe events",
            value=f"{found.failed_events:,}",
            detail="retried with growing patience",
            link=rows_of("payments_stripeevent", status__exact="failed"),
            is_alarming=found.failed_events > 0,
        ),
        Card(
            title="Refused postbacks",
            value=f"{found.refused_postbacks:,}",
            detail="above a cap in 24 hours",
            link=rows_of("credits_postback", state__exact="REFUSED", received_at__gte=received),
        ),
        Card(
            title="Contradicting postbacks",
            value=f"{found.conflicting_postbacks:,}",
            detail="came again in 24 hours, saying something else",
            link=rows_of("credits_postback", is_conflicting__exact="1", received_at__gte=received),
            is_alarming=found.conflicting_postbacks > 0,
        ),
        *(
            _queue(title, oldest, now, rows_of(model, **filters))
            for title, oldest, model, filters in (
                (
                    "Waits for broadcast",
                    relay_figures.oldest_unsent(),
                    "relay_attempt",
                    {"status__exact": "signed"},
                ),
                (
                    "Stripe event waits",
                    found.oldest_event,
                    "payments_stripeevent",
                    {"status__in": "received,failed"},
                ),
                ("Held earning is due", found.oldest_held_due, "credits_postback", {"state__exact": "HELD"}),
                ("Order at Stripe is open", found.oldest_operation, "payments_billingoperation", _PENDING),
            )
        ),
    ]


def _queue(title: str, oldest: datetime | None, now: datetime, link: str) -> Card:
    return Card(
        title=title,
        value=age_of(oldest, now) if oldest else "nothing",
        detail="age of the oldest",
        link=link,
        is_alarming=oldest is not None and now - oldest > _LATE,
    )


def _columns(hours: list[relay_figures.Hour], now: datetime) -> list[tuple[str, dict[str, int]]]:
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


def _line(purse: relay_figures.Purse) -> PurseLine:
    days = purse.days_left
    return PurseLine(
        address=purse.relayer.address,
        page=reverse("admin:relay_relayer_change", args=[purse.relayer.pk]),
        state="active" if purse.relayer.is_active else "paused",
        balance=f"{purse.balance:,.4f} LYX",
        lasts="nothing spent" if days is None else f"{days:,.1f} days",
        is_low=days is not None and days < _FEW_DAYS,
    )


def _range(columns: list[tuple[str, dict[str, int]]]) -> str:
    """Say what the columns span and how tall they are, for who cannot point at them."""
    most = max(sum(parts.values()) for _, parts in columns)
    return f"From {columns[0][0]} yesterday to {columns[-1][0]}, hour by hour; at most {_count(most, 'call')} in one."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _seconds(value: float | None) -> str:
    return "—" if value is None else f"{value:.1f} s"


def _coins(wei: int) -> str:
    return f"{Decimal(wei) / _WEI_PER_NATIVE_COIN:.6f} LYX"
