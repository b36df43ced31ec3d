"""Relative links in the pages lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, prose

_LINK = re.compile(r"""(?:\]\(|srcset="|src=")([^)\s"]+)""")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _anchor(heading: str) -> str:
    """Return the anchor that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _broken(page: Path) -> list[str]:
    broken = []
    for link in _LINK.findall(prose(page)):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


def anchors(page: Path) -> list[str]:
    return [_anchor(heading) for heading in _HEADING.findall(prose(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_and_anchor_exists(page: Path) -> None:
    assert _broken(page) == []


def test_every_decision_is_listed() -> None:
    listed = set(_LINK.findall((ROOT / "docs/adr/README.md").read_text()))

    assert {page.name for page in (ROOT / "docs/adr").glob("0*.md")} <= listed
