"""The alert rules query metrics that /metrics has, and link to headings that exist."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import yaml
from django.conf import settings as project
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from devstack.services.postgres import APPLICATION_ROLE
from devstack.services.stack import Services
from gateway.common import metrics
from gateway.metrics import exposition
from relay.services.accepting import submission
from tests.docs.pages import DOCS, ROOT, code_spans
from tests.docs.test_links import anchors

RULES = [
    rule
    for group in yaml.safe_load((DOCS / "alerts/gateway.rules.yml").read_text())["groups"]
    for rule in group["rules"]
]
METRIC = re.compile(r"\bgateway_[a-z_]+?(?=_(?:bucket|count|sum|total)\b|[^a-z_]|$)")
_MATCHER = re.compile(r'(gateway_[a-z_]+?)(?:_bucket|_count|_sum|_total)?\{([a-z]+)=~?"([^"]+)"\}')

by_name = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


@pytest.fixture
def offered(db: None, services: Services, settings: Settings) -> dict[str, set[str]]:
    """The figures of a service with everything set up, each with the values that its label may have."""
    settings.STRIPE_SECRET_KEY = "sk_test_something"
    for outcome in get_args(submission.Outcome):
        metrics.ACCEPTANCE.observe(0, outcome)
    metrics.Reporter().report()
    return {
        family.name: {value for sample in family.samples for value in sample.labels.values()}
        for family in text_string_to_metric_families(exposition().decode())
    }


def _alternatives(values: str) -> Iterator[str]:
    yield from values.split("|")


@by_name
def test_every_metric_of_a_rule_is_offered(rule: dict[str, Any], offered: dict[str, set[str]]) -> None:
    queried = set(METRIC.findall(rule["expr"]))
    assert queried <= set(offered)
    assert queried or rule["expr"].startswith("up{")


@by_name
def test_every_label_value_of_a_rule_is_offered(rule: dict[str, Any], offered: dict[str, set[str]]) -> None:
    labels = {**offered, "gateway_reconciliation_findings": offered["gateway_reconciliation_scheduled"]}
    for metric, _, values in _MATCHER.findall(rule["expr"]):
        assert set(_alternatives(values)) <= labels[metric]


@by_name
def test_every_rule_has_a_summary_a_severity_and_a_heading_of_the_runbook(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert page == "docs/runbook.md"
    assert anchor in anchors(ROOT / page)
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["labels"]["severity"] in {"page", "ticket"}


def test_every_comparison_has_an_alert_and_every_periodic_task_is_measured(
    offered: dict[str, set[str]],
) -> None:
    text = " ".join(rule["expr"] for rule in RULES)
    for comparison in offered["gateway_reconciliation_scheduled"]:
        assert f'gateway_reconciliation_findings{{comparison="{comparison}"}}' in text
    assert {str(entry["task"]) for entry in project.CELERY_BEAT_SCHEDULE.values()} <= offered[
        "gateway_periodic_task_period_seconds"
    ]


def test_the_runbook_names_metrics_that_are_offered(offered: dict[str, set[str]]) -> None:
    named = {name for span in code_spans((DOCS / "runbook.md").read_text()) for name in METRIC.findall(span)}
    assert named
    assert named - {APPLICATION_ROLE} <= set(offered)
