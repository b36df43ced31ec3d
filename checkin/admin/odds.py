"""A drop table's odds, for whoever writes or approves it."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from checkin import queries
from checkin.draw import Item, Odds, odds_of, probabilities_of
from checkin.models import DropTable


def odds_page(table: DropTable) -> SafeString:
    """Return probabilities, and per draw and per day what is expected, how far it strays, and the most."""
    items = queries.items_of([table])
    # Nobody draws from a table whose badge is gone.
    attempts = queries.most_attempts(table.badge) if table.badge else 0
    shown = {
        "items": [_item(*pair) for pair in zip(items, probabilities_of(items), strict=True)],
        "attempts": attempts,
        "worths": [_worth(odds, attempts) for odds in odds_of(items)],
    }
    return render_to_string("staff/odds.html", shown)


def _item(item: Item, chance: Fraction) -> dict[str, Any]:
    return {
        "drop_type": item.drop_type,
        "weight": item.weight,
        "values": f"{_plain(item.least)}–{_plain(item.most)}",
        "minutes": item.minutes or "",
        "probability": _percent(chance),
    }


def _worth(odds: Odds, attempts: int) -> dict[str, str]:
    day = odds.over(attempts)
    return {
        "drop_type": odds.drop_type,
        "probability": _percent(odds.probability),
        "expected": _figure(odds.expected),
        "variance": _figure(odds.variance),
        "expected_per_day": _figure(day.expected),
        "most_per_day": _plain(day.most),
    }


def _percent(chance: Fraction) -> str:
    # So fine that the rarest item that may be written still shows.
    return f"{_plain(Decimal(f'{float(chance * 100):.5f}'))}%"


def _figure(value: Fraction) -> str:
    return _plain(Decimal(f"{float(value):.6f}"))


def _plain(value: Decimal) -> str:
    """Return a value without needless zeros."""
    return f"{value.normalize():f}"
