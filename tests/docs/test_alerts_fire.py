"""Each alert fires while its own fault lasts, together with no other; and none fires while all is well."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from devstack.services.stack import Services
from gateway.chain.client import set_chain_client
from gateway.common import clock, metrics, tasks
from gateway.metrics import exposition
from tests.docs.faults import FAULTS, Fault, all_tasks_ended, make_healthy, redis
from tests.docs.pages import DOCS
from tests.docs.promtool import promtool
from tests.docs.test_alerts import RULES

_RULES = DOCS / "alerts/gateway.rules.yml"
_MINUTES = {"s": 1 / 60, "m": 1, "h": 60, "d": 24 * 60}
# Long enough for every rule to fire that would fire while all is well; in steps of minutes.
_HEALTHY_STEPS, _HEALTHY_STEP = 10, 12 * 60
_QUERIED = {name for rule in RULES for name in re.findall(r"\bgateway_[a-z_]+", rule["expr"])}
# Samples by name and labels.
Scraped = dict[tuple[str, frozenset[tuple[str, str]]], float]
_UP = ("up", frozenset[tuple[str, str]]())


@pytest.fixture
def healthy(db: None, services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scraped]:
    """The metrics of a healthy service."""
    set_chain_client(None)
    _forget()
    make_healthy(monkeypatch)
    yield scraped()
    _forget()
    set_chain_client(None)


def _forget() -> None:
    """Forget what Redis and this process have counted."""
    metrics.Reporter().report()
    redis().delete(tasks._HEARTBEATS_KEY, metrics._KEY, clock._KEY)


def scraped() -> Scraped:
    """Return what Prometheus gets now, with timestamps as the seconds that have passed since."""
    now = timezone.now().timestamp()
    return {
        (sample.name, frozenset(sample.labels.items())): now - sample.value
        if sample.name.endswith("_timestamp_seconds")
        else sample.value
        for family in text_string_to_metric_families(exposition().decode())
        for sample in family.samples
        if sample.name in _QUERIED
    } | {_UP: 1}


def series(states: list[tuple[Scraped, int]], step: int) -> list[dict[str, str]]:
    """Return the samples of these states, each for its number of steps, as promtool reads them."""
    return [
        {"series": _selector(*key), "values": " ".join(_samples(key, states, step))}
        for key in {key: None for state, _ in states for key in state}
    ]


def _samples(key: tuple[str, Any], states: list[tuple[Scraped, int]], step: int) -> Iterator[str]:
    """Yield the samples: a gauge stays, a counter grows, and an age stays the same."""
    start = 0
    for state, steps in states:
        value = state.get(key)
        if value is None:
            yield f"stale _x{steps - 1}" if steps > 1 else "stale"
        elif key[0].endswith("_timestamp_seconds"):
            yield f"{start * step * 60 - value:f}+{step * 60}x{steps - 1}"
        elif key[0].endswith(("_bucket", "_count", "_sum", "_total")):
            yield f"{start * value:f}+{value:f}x{steps - 1}"
        else:
            yield f"{value:f}+0x{steps - 1}"
        start += steps


def _selector(name: str, labels: frozenset[tuple[str, str]]) -> str:
    pairs = sorted(labels | {("job", "gateway"), ("instance", "one")})
    return f"{name}{{{','.join(f'{label}={json.dumps(value)}' for label, value in pairs)}}}"


def case_of(fault: Fault, healthy: Scraped) -> dict[str, Any]:
    """Cause the fault, and return a file of promtool: first all is well for a moment, then the fault lasts."""
    (rule,) = (rule for rule in RULES if rule["alert"] == fault.alert)
    waits = rule.get("for", "0m")
    minutes = math.ceil(int(waits[:-1]) * _MINUTES[waits[-1]])
    step = max(1, minutes // 15)
    # A rate takes two samples.
    steps = 3 + math.ceil(minutes / step)
    undone = transaction.atomic()
    # As in Django's own tests: services may insist on being outermost.
    undone._from_testcase = True  # type: ignore[attr-defined]
    with undone, pytest.MonkeyPatch.context() as patch:
        _forget()
        all_tasks_ended()
        fault.cause(patch)
        faulty = {_UP: 0.0} if fault.alert == "GatewayAway" else scraped()
        transaction.set_rollback(True)
    return _file(fault.alert, step, [(healthy, 1), (faulty, steps)], fault.alerts)


def _file(name: str, step: int, states: list[tuple[Scraped, int]], alerts: frozenset[str]) -> dict[str, Any]:
    """Return a file of promtool in which these alerts, and no others, fire at the end."""
    expected = {
        "expr": 'max by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{step * (sum(steps for _, steps in states) - 1)}m",
        "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(alerts)],
    }
    test = {
        "name": name,
        "interval": f"{step}m",
        "input_series": series(states, step),
        "promql_expr_test": [expected],
    }
    return {"rule_files": [str(_RULES)], "evaluation_interval": f"{step}m", "tests": [test]}


def test_each_alert_fires_by_its_fault_and_no_other_does(healthy: Scraped, tmp_path: Path) -> None:
    assert sorted(fault.alert for fault in FAULTS) == sorted(rule["alert"] for rule in RULES)
    files = [_file("all well", _HEALTHY_STEP, [(healthy, _HEALTHY_STEPS)], frozenset())]
    files += [case_of(fault, healthy) for fault in FAULTS]
    paths = [tmp_path / f"{file['tests'][0]['name']}.yml" for file in files]
    for path, file in zip(paths, files, strict=True):
        path.write_text(json.dumps(file))

    result = promtool("test", "rules", *map(str, paths))
    assert result.returncode == 0, result.stdout + result.stderr
