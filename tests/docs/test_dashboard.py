"""The dashboard asks for figures that the service has, and shows each kind of duration."""

import json
import re
from typing import Any

import pytest

from tests.docs.pages import DOCS
from tests.docs.promtool import promtool
from tests.docs.test_alerts import METRIC, offered

__all__ = ["offered"]

DASHBOARD = json.loads((DOCS / "alerts/gateway.dashboard.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]


def test_every_metric_of_the_dashboard_is_offered(offered: dict[str, set[str]]) -> None:
    queried = {name for query in QUERIES for name in METRIC.findall(query)}
    assert queried <= set(offered)
    durations = {
        name
        for name in offered
        if re.search(r"_(acceptance|broadcast|mined|settled|request|sql)_seconds", name)
    }
    assert durations <= queried


def test_every_query_is_one_that_prometheus_understands(tmp_path: Any) -> None:
    rules = [{"record": f"query:{place}", "expr": query} for place, query in enumerate(QUERIES)]
    path = tmp_path / "queries.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    result = promtool("check", "rules", str(path))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_panel_is_complete_and_none_covers_another(panel: dict[str, Any]) -> None:
    assert panel["datasource"]["uid"] == "${source}"
    assert panel["fieldConfig"]["defaults"]["unit"]
    others = [other for other in PANELS if other is not panel]
    assert panel["id"] not in {other["id"] for other in others}
    assert not any(_covers(panel["gridPos"], other["gridPos"]) for other in others)


def _covers(one: dict[str, int], other: dict[str, int]) -> bool:
    return all(
        one[start] < other[start] + other[length] and other[start] < one[start] + one[length]
        for start, length in (("x", "w"), ("y", "h"))
    )
