"""The table of deadlines names every state that can wait, and alerts that exist."""

import re
from collections.abc import Iterator

import pytest
import yaml
from django.db.models import TextChoices

from credits.models import AdjustmentDecision, HoldStatus
from earnings.models import PostbackState
from payments.models import BillingOperation, StripeEvent
from relay.models import AttemptStatus, RelayStatus, TopUpStatus
from tests.docs.pages import DOCS, code_spans, rows

# What has a state in the table, and the states from which nothing can follow any more.
STATES: dict[str, tuple[type[TextChoices], set[str]]] = {
    "relay call": (RelayStatus, set()),
    "attempt": (AttemptStatus, set()),
    "hold": (HoldStatus, {"CAPTURED", "RELEASED"}),
    "top-up": (TopUpStatus, {"replaced", "mined", "lost"}),
    "billing operation": (BillingOperation.Status, {"done", "refused"}),
    "webhook event": (StripeEvent.Status, {"processed"}),
    "postback": (PostbackState, {"AVAILABLE", "REVERSED", "INFO", "REFUSED"}),
    "adjustment": (AdjustmentDecision, {"APPROVED", "REJECTED"}),
}


def deadlines() -> Iterator[tuple[str, list[str]]]:
    """Yield each row of the table with what it is about, which only the first of several rows names."""
    page = (DOCS / "reliability.md").read_text()
    section = page[page.index("## Deadlines") : page.index("## Faults that were tried")]
    subject = ""
    for cells in rows_of(section):
        subject = cells[0] or subject
        yield subject, cells


def rows_of(section: str) -> list[list[str]]:
    """Return the rows of the page's tables that are in the section."""
    return [
        cells for cells in rows(DOCS / "reliability.md") if f"| {cells[-1]} |" in section and len(cells) == 4
    ]


@pytest.mark.parametrize("subject", STATES)
def test_every_state_that_is_no_end_has_a_deadline(subject: str) -> None:
    choices, ends = STATES[subject]
    named = {state for about, cells in deadlines() if about == subject for state in code_spans(cells[1])}
    assert named == set(choices.values) - ends


def test_every_alert_of_the_table_is_a_rule() -> None:
    rules = yaml.safe_load((DOCS / "alerts/gateway.rules.yml").read_text())
    names = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    named = {name for _, cells in deadlines() for name in re.findall(r"`(Gateway[A-Za-z]+)`", cells[-1])}
    assert len(named) > 15
    assert named <= names
