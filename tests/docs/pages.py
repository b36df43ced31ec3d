"""The pages under test."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")


def prose(page: Path) -> str:
    """Return the page without its fenced code."""
    return _FENCE.sub("", page.read_text())


def code_spans(text: str) -> list[str]:
    """Return what stands between single backticks."""
    return _CODE.findall(text)


def rows(page: Path) -> Iterator[list[str]]:
    """Yield the cells of every table row of the page, headings included."""
    for line in prose(page).splitlines():
        if line.startswith("|") and not set(line) <= set("|-: "):
            yield [cell.strip() for cell in line.strip("|").split("|")]
