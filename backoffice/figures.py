"""
What users earned and what was paid out; the state of the books is in `credits.queries.figures`.

How the relay performs: what became of calls, how fast, at what margin, and how long the relayers last.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.db import connection
from django.db.models import Count, DecimalField, ExpressionWrapper, F, Q, QuerySet, Sum

from credits.models import CreditEntry, EntrySource
from payments.models import Payout
from relay.models import Attempt, Relayer, RelayTransaction

# All sources of earnings; corrections and reversals are not earnings.
EARNINGS = (
    EntrySource.SUBSCRIBED_PAYOUT,
    EntrySource.PUSH_ADS,
    EntrySource.VIDEO_ADS,
    EntrySource.OFFERWALL,
    EntrySource.SURVEYS,
    EntrySource.CHECK_IN,
    EntrySource.CREDITS_BACK,
)


def earned_by_source(*, since: datetime) -> dict[str, int]:
    """Return the credits earned since then, most first."""
    rows = CreditEntry.objects.filter(created_at__gte=since, source__in=EARNINGS, amount__gt=0)
    return dict(rows.values_list("source").annotate(credits=Sum("amount")).order_by("-credits"))


@dataclass(frozen=True, kw_only=True)
class PaidOut:
    """Payouts of one currency: how many, of how much money in minor units, for how many credits."""

    currency: str
    payouts: int
    amount_minor: int
    credits: int


def paid_out(*, since: datetime) -> list[PaidOut]:
    """Return what was paid out since then, by currency."""
    rows = Payout.objects.filter(created_at__gte=since).values("currency")
    summed = rows.annotate(payouts=Count("pk"), minor=Sum("amount_minor"), granted=Sum("credits")).order_by(
        "currency"
    )
    return [
        PaidOut(
            currency=row["currency"],
            payouts=row["payouts"],
            amount_minor=row["minor"],
            credits=row["granted"],
        )
        for row in summed
    ]


DAY, WEEK = timedelta(days=1), timedelta(days=7)
_Status = RelayTransaction.Status
# Unwanted endings. A call that somebody else executed did what its controller wanted.
_UNSUCCESSFUL = (_Status.FAILED, _Status.EXPIRED, _Status.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """What became of the calls accepted since a moment; times in seconds, None where nothing was mined."""

    by_status: dict[str, int]
    median_seconds: float | None
    slow_seconds: float | None

    @property
    def success_rate(self) -> Decimal | None:
        """Return the share of ended calls that were executed, by us or by others; None where none has ended."""
        succeeded = sum(self.by_status.get(status, 0) for status in RelayTransaction.EXECUTED)
        ended = succeeded + sum(self.by_status.get(status, 0) for status in _UNSUCCESSFUL)
        return Decimal(succeeded) / ended if ended else None


def outcomes(*, since: datetime) -> Outcomes:
    """Return the outcomes of the calls accepted since then, in two statements."""
    counted = RelayTransaction.objects.filter(created_at__gte=since).values_list("status")
    with connection.cursor() as cursor:
        cursor.execute(_SECONDS_TO_INCLUSION, {"since": since})
        median, slow = cursor.fetchone() or (None, None)
    return Outcomes(
        by_status=dict(counted.annotate(Count("id")).order_by("status")),
        median_seconds=median,
        slow_seconds=slow,
    )


_SECONDS_TO_INCLUSION = """
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds), percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds)
FROM (
    SELECT extract(epoch FROM attempt.mined_at - asked.created_at)::float AS seconds
    FROM relay_relaytransaction AS asked JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = asked.id
    WHERE asked.created_at >= %(since)s AND attempt.created_at >= %(since)s
        AND attempt.kind = 'call' AND attempt.mined_at IS NOT NULL
) AS inclusion
"""


@dataclass(frozen=True, kw_only=True)
class Hour:
    """How many calls accepted within an hour have succeeded, ended otherwise, or wait."""

    begins_at: datetime
    succeeded: int
    unsuccessful: int
    waiting: int


def hours(*, since: datetime) -> list[Hour]:
    """Return one row per hour in which calls were accepted, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(_BY_HOUR, [since])
        return [
            Hour(begins_at=begins_at, succeeded=succeeded, unsuccessful=unsuccessful, waiting=waiting)
            for begins_at, succeeded, unsuccessful, waiting in cursor.fetchall()
        ]


_BY_HOUR = """
SELECT date_trunc('hour', created_at) AS hour,
       count(*) FILTER (WHERE status IN ('Success', 'ExecutedExternally')),
       count(*) FILTER (WHERE status IN ('Failed', 'Expired', 'Cancelled')),
       count(*) FILTER (WHERE status IN ('Pending', 'Submitted'))
FROM relay_relaytransaction WHERE created_at >= %s GROUP BY hour ORDER BY hour
"""


@dataclass(frozen=True, kw_only=True)
class Margin:
    """Gas that the service paid against credits that users paid, both in wei, of calls accepted since a moment."""

    spent_wei: int
    captured_wei: int

    @property
    def gained_wei(self) -> int:
        return self.captured_wei - self.spent_wei


def margin(*, since: datetime) -> Margin:
    """Return what relaying has cost and brought since then; self-transfers cost, too."""
    asked = RelayTransaction.objects.filter(created_at__gte=since)
    captured = asked.aggregate(credits=Sum("hold__captured_amount"))["credits"] or 0
    return Margin(spent_wei=_gas_of(_mined(since=since)), captured_wei=captured * settings.CREDIT_WEI)


@dataclass(frozen=True, kw_only=True)
class RelayerFigures:
    """A relayer, what it spent in the last week, and for how many days its balance lasts at that pace."""

    relayer: Relayer
    spent_wei: int
    days_left: Decimal | None


def relayers(*, now: datetime) -> list[RelayerFigures]:
    """Return the figures of every relayer, in two statements."""
    spent = _mined(since=now - WEEK).values("relayer").annotate(wei=Sum(_GAS_WEI)).order_by()
    by_relayer = {row["relayer"]: int(row["wei"] or 0) for row in spent}
    return [_figures_of(relayer, by_relayer.get(relayer.pk, 0)) for relayer in Relayer.objects.order_by("pk")]


def _figures_of(relayer: Relayer, spent_wei: int) -> RelayerFigures:
    days = Decimal(relayer.balance_wei * WEEK.days) / spent_wei if spent_wei else None
    return RelayerFigures(relayer=relayer, spent_wei=spent_wei, days_left=days)


_GAS_WEI = ExpressionWrapper(
    F("gas_used") * F("effective_gas_price_wei"), output_field=DecimalField(max_digits=78, decimal_places=0)
)


def _mined(*, since: datetime) -> QuerySet[Attempt]:
    # No attempt is older than its call; its own time has an index.
    return Attempt.objects.filter(
        Q(relay_transaction__created_at__gte=since), created_at__gte=since, gas_used__isnull=False
    )


def _gas_of(attempts: QuerySet[Attempt]) -> int:
    return int(attempts.aggregate(wei=Sum(_GAS_WEI))["wei"] or 0)
