"""One value as a cell: numbers stay numbers, and text is never a formula."""

from datetime import UTC, datetime
from decimal import Decimal

Cell = str | int | Decimal

# A spreadsheet reads text that begins like this as a formula, which could send other cells elsewhere.
_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def cell_of(value: object) -> Cell:
    """Return the cell of a value: times in ISO 8601 and UTC, yes and no in words, nothing as an empty text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | Decimal):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds") if value.tzinfo else value.isoformat()
    return harmless("" if value is None else str(value))


def harmless(text: str) -> str:
    """Return the text, after an apostrophe if it begins like a formula; leading blanks do not count."""
    return f"'{text}" if text.lstrip(" ").startswith(_BEGINS_A_FORMULA) else text
