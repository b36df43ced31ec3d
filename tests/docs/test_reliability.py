"""What the page on reliability says of tests, states and alerts is so."""

import itertools
import re
from collections import defaultdict

import pytest
from django.db.models import TextChoices

from credits.models import HoldStatus
from earnings.models import PostbackState
from gateway.staff.models import ApprovalRequest
from payments.models import BillingOperation, Refund, StripeEvent
from relay.models import AttemptStatus, RelayStatus, TopUpStatus
from tests.docs.pages import DOCS, ROOT
from users.models import AccountDeletion
from webhooks.models import MessageStatus

# What has states that pass, and which of them are an end that nothing undoes.
STATES: dict[str, tuple[type[TextChoices], set[str]]] = {
    "relay call": (RelayStatus, set()),
    "attempt": (AttemptStatus, set()),
    "hold": (HoldStatus, {"CAPTURED", "RELEASED"}),
    "top-up": (TopUpStatus, {"replaced", "mined", "lost"}),
    "billing operation": (BillingOperation.Status, {"done", "refused"}),
    "refund": (Refund.Status, {"done", "refused"}),
    "webhook event": (StripeEvent.Status, {"processed"}),
    "postback": (PostbackState, {"AVAILABLE", "REVERSED", "INFO", "REFUSED"}),
    "approval request": (ApprovalRequest.Status, {"done", "rejected"}),
    "deletion of an account": (AccountDeletion.Status, {"erased"}),
    "message to a wallet app": (MessageStatus, {"delivered"}),
}
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


def deadlines() -> list[list[str]]:
    """Return the rows of the table, each with the thing that it is about."""
    text = (DOCS / "reliability.md").read_text().split("## Deadlines", 1)[1].split("\n## ", 1)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ][2:]
    for above, row in itertools.pairwise(rows):
        row[0] = row[0] or above[0]
    return rows


def test_every_state_that_is_no_end_has_a_deadline() -> None:
    stated: dict[str, set[str]] = defaultdict(set)
    for subject, state, *_ in deadlines():
        stated[subject] |= set(re.findall(r"`([^`]+)`", state))
    for subject, (states, ends) in STATES.items():
        assert stated[subject] == set(states.values) - ends, subject


@pytest.mark.parametrize("row", deadlines(), ids=lambda row: " ".join(row[:3]))
def test_whoever_is_told_is_told_by_an_alert_that_exists(row: list[str]) -> None:
    rules = (DOCS / "alerts/gateway.rules.yml").read_text()
    for name in re.findall(r"`(Gateway\w+)`", row[3]):
        assert f"- alert: {name}\n" in rules
