"""A drop table's odds for the eye of whoever writes or approves it."""

from collections.abc import Iterable
from decimal import Decimal

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from checkin import queries
from checkin.draw import Item, Odds, odds_of, probabilities_of
from checkin.models import DropTable

_ITEM_HEADS = ("item", "values", "probability")
_WORTH_HEADS = ("type", "probability", "expected per draw", "variance", "expected per day", "most per day")


def odds_page(table: DropTable) -> SafeString:
    """Return probabilities, and per draw and per day what is expected, how far it strays, and the most."""
    items = queries.items_of([table]) if table.pk else []
    if not items or table.badge is None:
        return format_html("<p>{}</p>", "Save the items first.")
    attempts = queries.most_attempts(table.badge)
    return format_html(
        "{}<p>A day has at most {} attempts.</p>{}",
        _grid(_ITEM_HEADS, _item_rows(items)),
        attempts,
        _grid(_WORTH_HEADS, (_worth_row(odds, attempts) for odds in odds_of(items))),
    )


def _item_rows(items: list[Item]) -> Iterable[tuple[str, ...]]:
    for item, chance in zip(items, probabilities_of(items), strict=True):
        yield item.drop_type, f"{short(item.least)}–{short(item.most)}", f"{float(chance):.2%}"


def _worth_row(odds: Odds, attempts: int) -> tuple[str, ...]:
    day = odds.over(attempts)
    return (
        odds.drop_type,
        f"{float(odds.probability):.2%}",
        f"{float(odds.expected):.6f}",
        f"{float(odds.variance):.6f}",
        f"{float(day.expected):.6f}",
        short(day.most),
    )


def _grid(heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> SafeString:
    body = format_html_join("", "<tr>{}</tr>", ((_cells("td", row),) for row in rows))
    return format_html("<table><tr>{}</tr>{}</table>", _cells("th", heads), body)


def _cells(tag: str, texts: Iterable[str]) -> SafeString:
    return format_html_join("", "<{}>{}</{}>", ((tag, text, tag) for text in texts))


def short(value: Decimal) -> str:
    """Return a value without needless zeros."""
    return f"{value.normalize():f}"
