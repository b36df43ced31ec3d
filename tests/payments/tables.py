"""Tables of Markdown that tests write into pages."""

import os
from collections.abc import Sequence
from pathlib import Path


def table(rows: Sequence[dict[str, str]]) -> str:
    """Return the rows as a table; rows that differ in the first column only become one row."""
    merged: dict[tuple[str, ...], list[str]] = {}
    for first, *others in (row.values() for row in rows):
        merged.setdefault(tuple(others), []).append(first)
    lines = [list(rows[0]), ["---"] * len(rows[0])]
    lines += [["; ".join(firsts), *others] for others, firsts in merged.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def assert_page_has(page: Path, tables: dict[str, str], *, variable: str) -> None:
    """Assert that the page has each table between its comments; with the environment variable, write it there first."""
    text = page.read_text()
    for name, rows in tables.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        written = text.split(begin)[1].split(end)[0]
        text = text.replace(f"{begin}{written}{end}", f"{begin}{rows}{end}")
    if os.environ.get(variable):
        page.write_text(text)
    assert page.read_text() == text
