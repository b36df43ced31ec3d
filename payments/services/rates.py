"""Payout rates for the eye of whoever adds one: what stands, and what a new one would change. Nothing here writes."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, F, Sum

from payments.amounts import MINOR_UNITS, payout_credits
from payments.models import PayoutRate, Subscription

# What the effect is told by: 10.00 of the currency.
EXAMPLE_MINOR = 10 * MINOR_UNITS


class Standing(NamedTuple):
    """A currency's rate, None where payments wait for one; those that will follow; and who lives by them."""

    currency: str
    rate: PayoutRate | None
    planned: list[PayoutRate]
    subscriptions: int


class Change(NamedTuple):
    """A number before and then; None where there is no rate before."""

    before: int | None
    then: int


@dataclass(frozen=True, kw_only=True)
class Effect:
    """
    What a rate changes from `rate.valid_from` to `until`, where another begins, or without end.

    `example` is what 10.00 of the currency pays out, `monthly` what a month of the living
    subscriptions does, in credits; `experience` is that of one minor unit; `collected` is
    the price of that month in major units.
    """

    rate: PayoutRate
    until: datetime | None
    example: Change
    experience: Change
    subscriptions: int
    collected: Decimal
    monthly: Change


def standing(*, now: datetime) -> list[Standing]:
    """Return how each currency that subscriptions are sold in stands at `now`, in two statements."""
    newest_first = PayoutRate.objects.order_by("-valid_from")
    rates: dict[str, list[PayoutRate]] = {currency: [] for currency in settings.BILLING_CURRENCIES}
    for rate in newest_first.filter(currency__in=rates):
        rates[rate.currency].append(rate)
    living = dict(
        Subscription.objects.living().values_list("currency").annotate(Count("pk")).order_by("currency")
    )
    return [
        Standing(
            currency,
            rate=next((rate for rate in known if rate.valid_from <= now), None),
            planned=[rate for rate in reversed(known) if rate.valid_from > now],
            subscriptions=living.get(currency, 0),
        )
        for currency, known in rates.items()
    ]


def effect_of(*, rate: PayoutRate) -> Effect:
    """Return what adding the rate, which is valid and not stored, would change; in three statements."""
    before = PayoutRate.objects.in_force(currency=rate.currency, at=rate.valid_from)
    later = PayoutRate.objects.filter(currency=rate.currency, valid_from__gt=rate.valid_from)
    living = Subscription.objects.living().filter(currency=rate.currency)
    found = living.aggregate(
        count=Count("pk"),
        collected=Sum("amount_minor", default=0),
        before=_month_at(before.credits_per_major_unit if before else 0),
        then=_month_at(rate.credits_per_major_unit),
    )
    return Effect(
        rate=rate,
        until=later.order_by("valid_from").values_list("valid_from", flat=True).first(),
        example=Change(_example_at(before) if before else None, _example_at(rate)),
        experience=Change(
            before.experience_per_minor_unit if before else None, rate.experience_per_minor_unit
        ),
        subscriptions=found["count"],
        collected=Decimal(found["collected"]) / MINOR_UNITS,
        monthly=Change(found["before"] if before else None, found["then"]),
    )


def _example_at(rate: PayoutRate) -> int:
    return payout_credits(collected_minor=EXAMPLE_MINOR, credits_per_major_unit=rate.credits_per_major_unit)


def _month_at(credits_per_major_unit: int) -> Sum:
    """Return the sum of what each payout would be, each rounded down as `payout_credits` does."""
    return Sum(F("amount_minor") * credits_per_major_unit / MINOR_UNITS, default=0)
