"""Every test that the page on reliability names exists."""

import re

from tests.docs.pages import DOCS, ROOT

_NAMED = re.compile(r"`([\w/]*test_\w+\.py)`: `(test_\w+)`")


def test_every_named_test_exists() -> None:
    named = _NAMED.findall((DOCS / "reliability.md").read_text())
    missing = [
        (file, name)
        for file, name in named
        if f"def {name}("
        not in (ROOT / (file if "/" in file else f"tests/relay/services/{file}")).read_text()
    ]
    assert missing == []
    assert len(named) >= 30
