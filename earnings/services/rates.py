"""
What another rate of an ad network would do, for the eye of whoever changes it. Nothing here writes.

What a network has reported lately, in figures: for staff who wonder whether it works.
"""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Count, DecimalField, ExpressionWrapper, F, Q, Sum, Value
from django.db.models.functions import Floor

from earnings.models import AdNetwork, Postback, PostbackKind, PostbackState
from gateway.common.fields import SAFE_INTEGER_MAX
from rewards.benefits import earned_credits

LATELY = timedelta(days=30)
_AMOUNTS = (1, 10, 100, 1_000)
_EXACT = DecimalField(max_digits=65, decimal_places=24)


class Worth(NamedTuple):
    """The credits of an amount in the network's unit, without any bonus, at the rate before and at the new one."""

    amount: int
    before: int
    then: int


@dataclass(frozen=True, kw_only=True)
class Effect:
    """
    What a new rate makes of the same words of the network.

    `earnings` of the last 30 days are credited or held, with `given` credits. At the new rate
    they would be worth `then`, without the `above_cap` of them that the cap per event would
    refuse. Each keeps its bonus; the daily cap is left out.
    """

    rate: Decimal
    before: Decimal
    worths: list[Worth]
    earnings: int
    given: int
    then: int
    above_cap: int


def effect_of(*, network: AdNetwork, before: Decimal, now: datetime) -> Effect:
    """Return what the network's new rate, which is not stored, does in the place of `before`; in one statement."""
    worths = [
        Worth(
            amount,
            earned_credits(amount=Decimal(amount), rate=before, bonus=Decimal(0)),
            earned_credits(amount=Decimal(amount), rate=network.rate, bonus=Decimal(0)),
        )
        for amount in _AMOUNTS
    ]
    bonus = Value(1) + F("badge_bonus") + F("modifier_bonus")
    lately = Postback.objects.filter(
        network=network,
        kind=PostbackKind.CREDIT,
        state__in=[PostbackState.AVAILABLE, PostbackState.HELD],
        received_at__gte=now - LATELY,
    ).annotate(worth=Floor(ExpressionWrapper(F("amount") * Value(network.rate) * bonus, output_field=_EXACT)))
    # What no cap refuses is refused where JSON could not tell it.
    cap = min(network.per_event_cap or SAFE_INTEGER_MAX, SAFE_INTEGER_MAX - 1)
    found = lately.aggregate(
        earnings=Count("pk"),
        given=Sum("credits", default=0),
        then=Sum("worth", filter=Q(worth__lte=cap), default=Decimal(0)),
        above_cap=Count("pk", filter=Q(worth__gt=cap)),
    )
    return Effect(
        rate=network.rate,
        before=before,
        worths=worths,
        earnings=found["earnings"],
        given=found["given"],
        then=int(found["then"]),
        above_cap=found["above_cap"],
    )


_CREDIT = Q(kind=PostbackKind.CREDIT)
_BY_STATE = {
    "credited": _CREDIT & Q(state=PostbackState.AVAILABLE),
    "held": _CREDIT & Q(state=PostbackState.HELD),
    "taken_back": _CREDIT & Q(state=PostbackState.REVERSED),
    "refused": Q(state=PostbackState.REFUSED),
}


class Figures(NamedTuple):
    """Credits by what became of them, refusals, and the credits that entries gave and took, since a moment."""

    since: str
    credited: int
    held: int
    taken_back: int
    refused: int
    credits_given: int
    credits_taken: int


def figures_of(network: AdNetwork, *, now: datetime) -> list[Figures]:
    """Return the figures of today (UTC), 7 days and 30 days by the time of arrival, in one statement."""
    spans = {
        "today": datetime.combine(now.date(), time(), tzinfo=now.tzinfo),
        "7 days": now - timedelta(days=7),
        "30 days": now - timedelta(days=30),
    }
    posted = Q(entry__isnull=False)
    wanted: dict[str, Count | Sum] = {}
    for place, since in enumerate(spans.values()):
        lately = Q(received_at__gte=since)
        for name, state in _BY_STATE.items():
            wanted[f"{name}_{place}"] = Count("pk", filter=lately & state)
        wanted[f"credits_given_{place}"] = Sum("credits", filter=lately & posted & _CREDIT, default=0)
        wanted[f"credits_taken_{place}"] = Sum("credits", filter=lately & posted & ~_CREDIT, default=0)
    found = Postback.objects.filter(network=network, received_at__gte=spans["30 days"]).aggregate(**wanted)
    return [
        Figures(
            since,
            credited=found[f"credited_{place}"],
            held=found[f"held_{place}"],
            taken_back=found[f"taken_back_{place}"],
            refused=found[f"refused_{place}"],
            credits_given=found[f"credits_given_{place}"],
            credits_taken=found[f"credits_taken_{place}"],
        )
        for place, since in enumerate(spans)
    ]
