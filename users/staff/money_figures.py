"""What users earned and what was paid out; the state of the books is in `credits.queries.figures`."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Sum

from credits.models import CreditEntry, EntrySource
from payments.models import Payout

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
