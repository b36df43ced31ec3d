"""The alert rules ask for figures that /metrics offers, and lead to pages that exist."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.conf import settings as project
from pytest_django import Settings

from devstack.services.stack import Services
from gateway.metrics import Figures
from tests.docs.pages import DOCS, ROOT, code_spans
from tests.docs.test_links import anchors

RULES = [
    rule
    for group in yaml.safe_load((DOCS / "alerts/gateway.rules.yml").read_text())["groups"]
    for rule in group["rules"]
]
_METRIC = re.compile(r"\bgateway_[a-z_]+")
_MATCHER = re.compile(r'(gateway_[a-z_]+)\{([a-z]+)=~?"([^"]+)"\}')

by_name = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


@pytest.fixture
def offered(db: None, services: Services, settings: Settings) -> dict[str, set[str]]:
    """The figures of a service with everything set up, each with the values that its label may have."""
    settings.STRIPE_SECRET_KEY = "sk_test_something"
    return {
        family.name: {value for sample in family.samples for value in sample.labels.values()}
        for family in Figures().collect()
    }


def _said(values: str) -> Iterator[str]:
    yield from values.split("|")


@by_name
def test_every_figure_that_a_rule_asks_for_is_offered(
    rule: dict[str, Any], offered: dict[str, set[str]]
) -> None:
    asked = set(_METRIC.findall(rule["expr"]))
    assert asked <= set(offered)
    assert asked or rule["expr"].startswith("up{")


@by_name
def test_every_label_that_a_rule_asks_for_is_given(
    rule: dict[str, Any], offered: dict[str, set[str]]
) -> None:
    known = {**offered, "gateway_reconciliation_findings": offered["gateway_reconciliation_scheduled"]}
    for metric, _, values in _MATCHER.findall(rule["expr"]):
        assert set(_said(values)) <= known[metric]


@by_name
def test_every_rule_says_what_hurts_how_much_and_what_to_do(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert page == "docs/runbook.md"
    assert anchor in anchors(ROOT / page)
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["labels"]["severity"] in {"page", "ticket"}


def test_no_two_rules_share_a_name() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) > 20


def test_every_comparison_and_queue_has_its_alarm(offered: dict[str, set[str]]) -> None:
    text = " ".join(rule["expr"] for rule in RULES)
    for comparison in offered["gateway_reconciliation_scheduled"]:
        assert f'gateway_reconciliation_findings{{comparison="{comparison}"}}' in text
    assert {str(entry["task"]) for entry in project.CELERY_BEAT_SCHEDULE.values()} <= offered[
        "gateway_periodic_task_period_seconds"
    ]


@pytest.mark.parametrize("page", ["deployment.md", "runbook.md"])
def test_the_pages_name_figures_that_are_offered(page: str, offered: dict[str, set[str]]) -> None:
    named = {name for span in code_spans((DOCS / page).read_text()) for name in _METRIC.findall(span)}
    assert named
    assert named <= set(offered)
