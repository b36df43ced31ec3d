"""What a network has reported lately, in figures: for staff who wonder whether it works."""

from datetime import datetime, time, timedelta
from typing import NamedTuple

from django.db.models import Count, Q, Sum

from credits.models import AdNetwork, Postback, PostbackKind, PostbackState

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
