"""Figures of earnings, payouts and relaying: outcomes, speed, margin, and relayers."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Count, DecimalField, ExpressionWrapper, F, Q, QuerySet, Sum
from django.db.models.functions import TruncHour

from credits.models import CreditEntry, EntrySource
from gateway.chain.config import home
from gateway.common import db
from gateway.common.statements import Statements
from payments.models import Payout
from relay.models import Attempt, Relayer, RelayTransaction
from relay.queries.figures import unretired_relayers

# The sources of earnings, without corrections and reversals.
EARNINGS = (
    EntrySource.SUBSCRIBED_PAYOUT,
    EntrySource.CREDIT_PURCHASE,
    EntrySource.PUSH_ADS,
    EntrySource.VIDEO_ADS,
    EntrySource.OFFERWALL,
    EntrySource.SURVEYS,
    EntrySource.CHECK_IN,
    EntrySource.CREDITS_BACK,
)


class _Sql(Statements, file=__file__):
    seconds_to_inclusion: str


def earned_by_source(*, since: datetime) -> dict[str, int]:
    rows = CreditEntry.objects.filter(created_at__gte=since, source__in=EARNINGS, amount__gt=0)
    return dict(rows.values_list("source").annotate(credits=Sum("amount")).order_by("-credits"))


class PaidOut(NamedTuple):
    """Payouts of one currency: their number, money in minor units, and credits."""

    currency: str
    payouts: int
    amount_minor: int
    credits: int


def paid_out(*, since: datetime) -> list[PaidOut]:
    by_currency = Payout.objects.filter(created_at__gte=since).values_list("currency").order_by("currency")
    return [PaidOut(*row) for row in by_currency.annotate(Count("pk"), Sum("amount_minor"), Sum("credits"))]


WEEK = timedelta(days=7)
_Status = RelayTransaction.Status
# Failed calls. A call that another sender executed is not among them: it had its intended effect.
_UNSUCCESSFUL = (_Status.FAILED, _Status.EXPIRED, _Status.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """Outcomes of the calls accepted since a time; durations in seconds, None if nothing was mined."""

    by_status: dict[str, int]
    median_seconds: float | None
    slow_seconds: float | None

    @property
    def success_rate(self) -> Decimal | None:
        """Return the share of executed calls among ended ones; None if none has ended."""
        succeeded = sum(self.by_status.get(status, 0) for status in RelayTransaction.EXECUTED)
        ended = succeeded + sum(self.by_status.get(status, 0) for status in _UNSUCCESSFUL)
        return Decimal(succeeded) / ended if ended else None


def outcomes(*, since: datetime) -> Outcomes:
    """Return the outcomes of the calls accepted since `since`, in two statements."""
    counted = RelayTransaction.objects.filter(created_at__gte=since).values_list("status")
    by_status = dict(counted.annotate(Count("id")).order_by("status"))
    median, slow = db.only_row(_Sql.seconds_to_inclusion, {"since": since, "kind": Attempt.Kind.CALL})
    return Outcomes(by_status=by_status, median_seconds=median, slow_seconds=slow)


class Hour(NamedTuple):
    """The calls accepted in one hour: how many have succeeded, how many have failed, and how many are in progress."""

    begins_at: datetime
    succeeded: int
    unsuccessful: int
    waiting: int


def hours(*, since: datetime) -> list[Hour]:
    """Return one row per hour with accepted calls, oldest first."""
    calls = RelayTransaction.objects.filter(created_at__gte=since)
    by_hour = calls.annotate(hour=TruncHour("created_at")).values_list("hour").order_by("hour")
    counts = [
        Count("pk", filter=Q(status__in=statuses))
        for statuses in (RelayTransaction.EXECUTED, _UNSUCCESSFUL, RelayTransaction.IN_PROGRESS)
    ]
    return [
        Hour(*row) for row in by_hour.annotate(succeeded=counts[0], unsuccessful=counts[1], waiting=counts[2])
    ]


@dataclass(frozen=True, kw_only=True)
class Margin:
    """Gas paid by the service and credits paid by users, both in wei, for calls on home accepted since a time."""

    spent_wei: int
    captured_wei: int

    @property
    def gained_wei(self) -> int:
        return self.captured_wei - self.spent_wei


def margin(*, since: datetime) -> Margin:
    """Return the costs and revenue of relaying on home since `since`; self-transfers are costs too."""
    calls = RelayTransaction.objects.filter(chain_id=home().id, created_at__gte=since)
    captured_wei = calls.aggregate(wei=Sum(_CAPTURED_WEI))["wei"] or 0
    spent_wei = int(_mined(since=since).filter(chain_id=home().id).aggregate(wei=Sum(_GAS_WEI))["wei"] or 0)
    return Margin(spent_wei=spent_wei, captured_wei=int(captured_wei))


@dataclass(frozen=True, kw_only=True)
class RelayerFigures:
    """A relayer, and the number of days that its balance lasts at last week's rate of spending."""

    relayer: Relayer
    days_left: Decimal | None


def relayers(*, now: datetime) -> list[RelayerFigures]:
    """Return the figures of every relayer that is not retired, in two statements."""
    spent = _mined(since=now - WEEK).values("relayer").annotate(wei=Sum(_GAS_WEI)).order_by()
    by_relayer = {row["relayer"]: int(row["wei"] or 0) for row in spent}
    return [_figures_of(relayer, by_relayer.get(relayer.pk, 0)) for relayer in unretired_relayers()]


def _figures_of(relayer: Relayer, spent_wei: int) -> RelayerFigures:
    days = Decimal(relayer.balance_wei * WEEK.days) / spent_wei if spent_wei else None
    return RelayerFigures(relayer=relayer, days_left=days)


_CAPTURED_WEI = ExpressionWrapper(
    F("hold__captured_amount") * F("credit_wei"), output_field=DecimalField(max_digits=78, decimal_places=0)
)
_GAS_WEI = ExpressionWrapper(
    F("gas_used") * F("effective_gas_price_wei") + F("extra_fee_wei"),
    output_field=DecimalField(max_digits=78, decimal_places=0),
)


def _mined(*, since: datetime) -> QuerySet[Attempt]:
    # Attempts have an index by time, and no attempt is older than its call.
    return Attempt.objects.filter(
        Q(relay_transaction__created_at__gte=since), created_at__gte=since, gas_used__isnull=False
    )
