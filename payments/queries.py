"""Reads for pages, metrics and the admin. Nothing here writes."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, F, QuerySet, Sum

from gateway.common import db
from gateway.common.statements import Statements
from payments.amounts import MINOR_UNITS, payout_credits
from payments.errors import OtherMode
from payments.models import CreditPack, Payout, PayoutRate, Purchase, StripeEvent, Subscription
from sponsors.models import Sponsor
from users.models import User

# Staff see a rate's effect on this amount: 10.00 of the currency.
EXAMPLE_MINOR = 10 * MINOR_UNITS
_NEWEST = 10


class _Sql(Statements, file=__file__):
    counts: str


def monthly_amount_of(user: User) -> Decimal:
    """Return the monthly amount of the user's live subscriptions, in major units; 0 without one."""
    live = Subscription.objects.live().filter(user_id=user.pk)
    amount_minor: int = live.aggregate(total=Sum("amount_minor", default=0))["total"]
    return Decimal(amount_minor) / MINOR_UNITS


def fixed_currency_of(user: User) -> str | None:
    """Return the currency of the user's live subscription, in which alone Stripe charges the user; None without one."""
    live = Subscription.objects.live().filter(user_id=user.pk).kept_first()
    return live.values_list("currency", flat=True).first()


def own_currency_of(user: User) -> str | None:
    """Return the currency of the user's live subscription, else of the last payment; None before the first."""
    paid = Payout.objects.filter(user_id=user.pk).order_by("-pk")
    return fixed_currency_of(user) or paid.values_list("currency", flat=True).first()


def newest_purchases(user: User) -> list[tuple[Purchase, Payout | None]]:
    """Return the last ten paid purchases of a user for themselves, newest first, each with its payout if any."""
    paid = Purchase.objects.filter(user_id=user.pk, sponsor=None, status=Purchase.Status.PAID)
    rows = list(paid.select_related("pack").order_by("-finished_at", "pk")[:_NEWEST])
    payouts = Payout.objects.filter(stripe_invoice_id__in=[row.stripe_invoice_id for row in rows])
    by_invoice = {row.stripe_invoice_id: row for row in payouts.prefetch_related("refunds")}
    return [(row, by_invoice.get(row.stripe_invoice_id)) for row in rows]


def changed_amount_from(user: User, *, now: datetime) -> datetime | None:
    """
    Return when the amount of `monthly_amount_of` is first charged; None if the current period paid it, or none will.

    A changed amount applies from the next period; the current period was paid with the previous amount.
    """
    live = Subscription.objects.live().filter(user_id=user.pk, cancels_at_period_end=False)
    row = live.kept_first().first()
    if row is None:
        return None
    paid = next(iter(row.payouts_at(now)), None)
    if paid is None or row.amount_minor in {paid.amount_minor, paid.amount_minor + paid.tax_minor}:
        return None  # The price may include tax or not.
    return row.current_period_end


def subscription_status_of(user: User) -> str | None:
    """Return Stripe's status of the user's live subscription, else of the one created last, or None."""
    row = Subscription.objects.filter(user_id=user.pk).current_or_last()
    return row.status if row else None


class PaymentCounts(NamedTuple):
    """A snapshot of waiting events and operations. Ages are in seconds, 0 if nothing waits."""

    received_events: int
    failed_events: int
    # Age of the oldest event that is not processed.
    oldest_event_age: float
    pending_operations: int
    oldest_operation_age: float
    # Payments with a card network's fraud warning within the last week whose money was not fully returned.
    fraud_warnings: int


def payment_counts() -> PaymentCounts:
    """Return the snapshot in one statement, which reads only unfinished events and operations."""
    return PaymentCounts(*db.only_row(_Sql.counts, {}))


def has_events_of_other_mode() -> bool:
    """Return whether events wait because Stripe sends those of the other mode, live or test."""
    failed = StripeEvent.objects.filter(status=StripeEvent.Status.FAILED)
    return failed.filter(last_error__startswith=f"{OtherMode.code}:").exists()


def paid_for_sponsor(sponsor: Sponsor) -> QuerySet[Payout]:
    """Return the payouts to the sponsor, each with `taken_back`: the credits that clawbacks have taken back."""
    rows = Payout.objects.filter(purchase__sponsor=sponsor).select_related("user", "purchase")
    return rows.annotate(taken_back=Sum("clawbacks__credits", default=0))


def offered_packs() -> list[CreditPack]:
    """Return the packs that are offered, by currency and price."""
    rows = CreditPack.objects.filter(is_offered=True, currency__in=settings.BILLING_CURRENCIES)
    return list(rows.order_by("currency", "amount_minor", "pk"))


class CurrencyRates(NamedTuple):
    """A currency's rate in force (None if payments wait for one), its planned rates, and its live subscriptions."""

    currency: str
    rate: PayoutRate | None
    planned: list[PayoutRate]
    subscriptions: int


class Change(NamedTuple):
    before: int | None
    after: int


@dataclass(frozen=True, kw_only=True)
class Effect:
    """
    The effect of a rate from `rate.valid_from` until the next rate at `until`, if there is one.

    `example` is the payout for 10.00 of the currency, `monthly` that for one month of the live subscriptions, both in
    credits. `experience` is per minor unit; `collected` is the price of that month in major units.
    """

    rate: PayoutRate
    until: datetime | None
    example: Change
    experience: Change
    subscriptions: int
    collected: Decimal
    monthly: Change


def rates_in_force(*, now: datetime) -> list[CurrencyRates]:
    """Return the rates at `now` for each supported currency, in two statements."""
    newest_first = PayoutRate.objects.order_by("-valid_from")
    rates: dict[str, list[PayoutRate]] = {currency: [] for currency in settings.BILLING_CURRENCIES}
    for rate in newest_first.filter(currency__in=rates):
        rates[rate.currency].append(rate)
    live = dict(
        Subscription.objects.live().values_list("currency").annotate(Count("pk")).order_by("currency")
    )
    return [
        CurrencyRates(
            currency,
            rate=next((rate for rate in history if rate.valid_from <= now), None),
            planned=[rate for rate in reversed(history) if rate.valid_from > now],
            subscriptions=live.get(currency, 0),
        )
        for currency, history in rates.items()
    ]


def effect_of_rate(*, rate: PayoutRate) -> Effect:
    """Return the effect of adding `rate`, which is validated but not stored, in three statements."""
    before = PayoutRate.objects.in_force(currency=rate.currency, at=rate.valid_from)
    later = PayoutRate.objects.filter(currency=rate.currency, valid_from__gt=rate.valid_from)
    live = Subscription.objects.live().filter(currency=rate.currency)
    totals = live.aggregate(
        count=Count("pk"),
        collected=Sum("amount_minor", default=0),
        before=_month_at(before.credits_per_major_unit if before else 0),
        after=_month_at(rate.credits_per_major_unit),
    )
    return Effect(
        rate=rate,
        until=later.order_by("valid_from").values_list("valid_from", flat=True).first(),
        example=Change(_example_at(before) if before else None, _example_at(rate)),
        experience=Change(
            before.experience_per_minor_unit if before else None, rate.experience_per_minor_unit
        ),
        subscriptions=totals["count"],
        collected=Decimal(totals["collected"]) / MINOR_UNITS,
        monthly=Change(totals["before"] if before else None, totals["after"]),
    )


def _example_at(rate: PayoutRate) -> int:
    return payout_credits(collected_minor=EXAMPLE_MINOR, credits_per_major_unit=rate.credits_per_major_unit)


def _month_at(credits_per_major_unit: int) -> Sum:
    return Sum(F("amount_minor") * credits_per_major_unit / MINOR_UNITS, default=0)
