"""Reads of ad networks and postbacks: their counts and totals, and the effect of a new rate."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from django.conf import settings
from django.db.models import (
    Count,
    DecimalField,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextField,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Concat, Floor

from earnings.models import CAPS, AdNetwork, HoldReason, Postback, PostbackKind, PostbackState
from earnings.rules import COUNTED, are_often_reversed
from gateway.common import db
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.common.statements import Statements
from rewards.rules import earned_credits

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

# Earnings of a network from which its typical amount can be told.
FEWEST_SAMPLES = 10
RATE_PERIOD = timedelta(days=30)
_AMOUNTS = (1, 10, 100, 1_000)
_EXACT = DecimalField(max_digits=65, decimal_places=24)
_CREDIT = Q(kind=PostbackKind.CREDIT)
_COUNTS = {
    "credited": _CREDIT & Q(state=PostbackState.AVAILABLE),
    "held": _CREDIT & Q(state=PostbackState.HELD),
    "reversed": _CREDIT & Q(state=PostbackState.REVERSED),
    "refused": Q(state=PostbackState.REFUSED),
}


class _Sql(Statements, file=__file__):
    postback_counts: str
    typical_credits: str


def networks() -> dict[str, bool]:
    return dict(AdNetwork.objects.order_by("slug").values_list("slug", "is_enabled"))


class PostbackCounts(NamedTuple):
    """A snapshot of postbacks: whole credits, and a delay in seconds, 0 if none is overdue."""

    held: int
    held_credits: int
    # Delay of the oldest overdue held earning; earnings of a paused network do not count.
    overdue_age: float
    beyond_cap: int
    unassigned: int
    # Reversals whose credit has not arrived within 24 hours.
    unmatched_reversals: int
    # Postbacks of the last 24 hours.
    refused: int
    conflicting: int
    # The credits of all networks today, as a fraction of the daily ceiling.
    ceiling_used: float


def postback_counts() -> PostbackCounts:
    """Return the snapshot in one statement, which reads only held and recent postbacks."""
    ceiling = {"ceiling": settings.EARNINGS_DAILY_CEILING}
    return PostbackCounts(*db.only_row(_Sql.postback_counts, ceiling))


class NetworkTotals(NamedTuple):
    """Totals since a time: credits by state, refusals, and credits granted and reversed by entries."""

    since: str
    credited: int
    held: int
    reversed: int
    refused: int
    credits_given: int
    credits_taken: int


def totals_of(network: AdNetwork, *, now: datetime) -> list[NetworkTotals]:
    """Return the totals of today (UTC), 7 days and 30 days by time of arrival, in one statement."""
    spans = {
        "today": datetime.combine(now.date(), time(), tzinfo=now.tzinfo),
        "7 days": now - timedelta(days=7),
        "30 days": now - timedelta(days=30),
    }
    posted = Q(entry__isnull=False)
    aggregates: dict[str, Count | Sum] = {}
    for place, since in enumerate(spans.values()):
        recent = Q(received_at__gte=since)
        for name, condition in _COUNTS.items():
            aggregates[f"{name}_{place}"] = Count("pk", filter=recent & condition)
        aggregates[f"credits_given_{place}"] = Sum("credits", filter=recent & posted & _CREDIT, default=0)
        aggregates[f"credits_taken_{place}"] = Sum("credits", filter=recent & posted & ~_CREDIT, default=0)
    postbacks = Postback.objects.filter(network=network, received_at__gte=spans["30 days"])
    row = postbacks.aggregate(**aggregates)
    return [
        NetworkTotals(since, *(row[f"{name}_{place}"] for name in NetworkTotals._fields[1:]))
        for place, since in enumerate(spans)
    ]


class Worth(NamedTuple):
    """The credits of an amount in the network's unit, without bonuses, at the old and the new rate."""

    amount: int
    before: int
    after: int


@dataclass(frozen=True, kw_only=True)
class RateEffect:
    """
    The effect of a new rate on the network's past earnings.

    `earnings` of the last 30 days were credited or held, with `given` credits. At the new rate
    they would yield `after` credits, without the `above_cap` of them that the cap per event
    would hold. Each keeps its bonus; the daily cap is ignored.
    """

    rate: Decimal
    before: Decimal
    worths: list[Worth]
    earnings: int
    given: int
    after: int
    above_cap: int


def rate_effect(*, network: AdNetwork, before: Decimal, now: datetime) -> RateEffect:
    """Return the effect of the network's new, unsaved rate instead of `before`, in one statement."""
    worths = [
        Worth(
            amount,
            earned_credits(amount=Decimal(amount), rate=before, bonus=Decimal(0)),
            earned_credits(amount=Decimal(amount), rate=network.rate, bonus=Decimal(0)),
        )
        for amount in _AMOUNTS
    ]
    bonus = Value(1) + F("badge_bonus") + F("modifier_bonus")
    # Credits that are held beyond a cap may never be given.
    recent = Postback.objects.filter(
        Q(state=PostbackState.AVAILABLE) | Q(state=PostbackState.HELD, available_at__isnull=False),
        network=network,
        kind=PostbackKind.CREDIT,
        received_at__gte=now - RATE_PERIOD,
    ).annotate(worth=Floor(ExpressionWrapper(F("amount") * Value(network.rate) * bonus, output_field=_EXACT)))
    cap = min(network.per_event_cap, SAFE_INTEGER_MAX - 1)
    row = recent.aggregate(
        earnings=Count("pk"),
        given=Sum("credits", default=0),
        after=Sum("worth", filter=Q(worth__lte=cap), default=Decimal(0)),
        above_cap=Count("pk", filter=Q(worth__gt=cap)),
    )
    return RateEffect(
        rate=network.rate,
        before=before,
        worths=worths,
        earnings=row["earnings"],
        given=row["given"],
        after=int(row["after"]),
        above_cap=row["above_cap"],
    )


class PersonEarnings(NamedTuple):
    """The earnings that determine how long a person's credits are held: their number, and how many were taken back."""

    earnings: int
    reversals: int

    @property
    def are_held_longer(self) -> bool:
        return are_often_reversed(earnings=self.earnings, reversals=self.reversals)


def earnings_of(*, user_id: int, now: datetime) -> PersonEarnings:
    """Return the person's counts over all networks."""
    recent = Postback.objects.filter(user=user_id, received_at__gte=now - COUNTED)
    return PersonEarnings(**recent.aggregate(**COUNTS_OF_PERSON))


# A partly reversed earning counts as reversed once, whatever the number of its reversals.
COUNTS_OF_PERSON = {
    "earnings": Count("pk", filter=_CREDIT & ~Q(state=PostbackState.REFUSED)),
    "reversals": Count(
        Concat(Cast("network_id", TextField()), Value(":"), "original_id"),
        distinct=True,
        filter=Q(kind=PostbackKind.REVERSAL, state=PostbackState.REVERSED, credits__gt=0),
    ),
}


class HeldBecause(StrEnum):
    """Why an earning is still held, in words for its owner."""

    NETWORK = "network-hold"
    REVERSALS = "earlier-reversals"
    REVIEW = "review"
    PAUSED = "network-paused"


class HeldEarning(NamedTuple):
    """A held earning of a person; `arrives_at` is None if staff must decide, or its network is paused."""

    network: str
    credits: int
    received_at: datetime
    arrives_at: datetime | None
    because: HeldBecause


class Arriving(NamedTuple):
    """The held earnings of a person: their number and credits, and the first ones to arrive."""

    number: int
    credits: int
    first: list[HeldEarning]


_LISTED = 100


def arriving(*, user_id: int) -> Arriving:
    """Return the person's held earnings, less the credits that partial reversals took, in two statements."""
    held = left_of(Postback.objects.filter(user=user_id, kind=PostbackKind.CREDIT, state=PostbackState.HELD))
    totals = held.aggregate(count=Count("pk"), sum=Sum("left", default=0))
    first = held.select_related("network").order_by(F("available_at").asc(nulls_last=True), "pk")
    return Arriving(
        totals["count"], totals["sum"], [held_earning(row, left=row.left) for row in first[:_LISTED]]
    )


class _Left(TypedDict):
    left: int


def left_of(credits: QuerySet[Postback]) -> "QuerySet[WithAnnotations[Postback, _Left]]":
    """Annotate each credit with `left`: its credits without those that partial reversals took."""
    reversals = Postback.objects.filter(
        network=OuterRef("network"),
        original_id=OuterRef("original_id"),
        kind=PostbackKind.REVERSAL,
        state=PostbackState.REVERSED,
    )
    taken = reversals.order_by().values("original_id").annotate(sum=Sum("credits")).values("sum")
    return credits.annotate(left=F("credits") - Coalesce(Subquery(taken), Value(0)))


def held_earning(credit: Postback, *, left: int) -> HeldEarning:
    """Return a held credit as its owner sees it, with the credits that are left of it."""
    because = _held_because(credit)
    is_dated = because in {HeldBecause.NETWORK, HeldBecause.REVERSALS}
    arrives_at = credit.available_at if is_dated else None
    return HeldEarning(credit.network.slug, left, credit.received_at, arrives_at, because)


def _held_because(credit: Postback) -> HeldBecause:
    if credit.hold_reason in CAPS:
        return HeldBecause.REVIEW
    if not credit.network.is_enabled:
        return HeldBecause.PAUSED
    return HeldBecause.REVERSALS if credit.hold_reason == HoldReason.REVERSALS else HeldBecause.NETWORK


def typical_credits() -> dict[int, int]:
    """
    Return the median of the newest credited earnings by network; one statement over the newest postbacks.

    Networks with fewer than `FEWEST_SAMPLES` of them are missing.
    """
    params = {"newest": 2_000, "fewest": FEWEST_SAMPLES}
    return {network: round(median) for network, median in db.all_rows(_Sql.typical_credits, params)}
