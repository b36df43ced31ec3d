"""How the books stand: what users may spend, what they earned, what was paid out, what waits or failed."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Q, Sum

from credits.models import CreditAccount, CreditEntry, EntrySource, Postback
from payments.models import BillingOperation, Payout, StripeEvent

# Everything that puts credits on accounts by itself; corrections and reversals are no earnings.
EARNINGS = (
    EntrySource.SUBSCRIBED_PAYOUT,
    EntrySource.PUSH_ADS,
    EntrySource.VIDEO_ADS,
    EntrySource.OFFERWALL,
    EntrySource.SURVEYS,
    EntrySource.CHECK_IN,
    EntrySource.CREDITS_BACK,
)


@dataclass(frozen=True, kw_only=True)
class Outstanding:
    """Whole credits over all accounts: what users own, what they owe, what is held."""

    accounts: int
    owned: int
    owed: int
    held: int


def outstanding() -> Outstanding:
    """Return the sums over all accounts."""
    found = CreditAccount.objects.aggregate(
        accounts=Count("pk"),
        owned=Sum("balance", filter=Q(balance__gt=0), default=0),
        owed=Sum("balance", filter=Q(balance__lt=0), default=0),
        held=Sum("held", default=0),
    )
    return Outstanding(
        accounts=found["accounts"], owned=found["owned"], owed=-found["owed"], held=found["held"]
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


@dataclass(frozen=True, kw_only=True)
class Troubles:
    """What failed, and since when the oldest of what is due waits."""

    failed_events: int
    oldest_event: datetime | None
    refused_postbacks: int
    conflicting_postbacks: int
    oldest_held_due: datetime | None
    oldest_operation: datetime | None


def troubles(*, since: datetime, now: datetime) -> Troubles:
    """Return failures and queue ages, in four statements; postbacks are counted since then."""
    # Named as the partial index names them: there are far more processed ones.
    waiting_states = [StripeEvent.Status.RECEIVED, StripeEvent.Status.FAILED]
    events = StripeEvent.objects.filter(status__in=waiting_states).aggregate(
        failed=Count("pk", filter=Q(status=StripeEvent.Status.FAILED)), oldest=Min("received_at")
    )
    postbacks = Postback.objects.filter(received_at__gte=since).aggregate(
        refused=Count("pk", filter=Q(state="REFUSED")),
        conflicting=Count("pk", filter=Q(is_conflicting=True)),
    )
    due = Postback.objects.filter(state="HELD", available_at__lte=now)
    waiting = BillingOperation.objects.filter(status=BillingOperation.Status.PENDING)
    return Troubles(
        failed_events=events["failed"],
        oldest_event=events["oldest"],
        refused_postbacks=postbacks["refused"],
        conflicting_postbacks=postbacks["conflicting"],
        oldest_held_due=due.aggregate(oldest=Min("available_at"))["oldest"],
        oldest_operation=waiting.aggregate(oldest=Min("created_at"))["oldest"],
    )
