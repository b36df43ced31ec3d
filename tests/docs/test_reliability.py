"""The table of deadlines covers every state that is not final, and names alerts that exist."""

import itertools
import re
from collections import defaultdict

import pytest
from django.db.models import TextChoices

from accounting.models import Month
from credits.models import HoldStatus
from earnings.models import PostbackState
from gateway.staff.models import ApprovalRequest
from payments.models import BillingOperation, Purchase, Refund, StripeEvent
from relay.models import AttemptStatus, RelayStatus, TopUpStatus
from tests.docs.pages import DOCS
from users.models import AccountDeletion
from webhooks.models import MessageStatus

# The states of each thing that changes, and which of them are final.
STATES: dict[str, tuple[type[TextChoices], set[str]]] = {
    "relay call": (RelayStatus, set()),
    "attempt": (AttemptStatus, set()),
    "hold": (HoldStatus, {"CAPTURED", "RELEASED"}),
    "top-up": (TopUpStatus, {"replaced", "mined", "lost"}),
    "billing operation": (BillingOperation.Status, {"done", "refused"}),
    "refund": (Refund.Status, {"done", "refused"}),
    "purchase": (Purchase.Status, {"paid", "void"}),
    "webhook event": (StripeEvent.Status, {"processed"}),
    "postback": (PostbackState, {"AVAILABLE", "REVERSED", "INFO", "REFUSED"}),
    "month of accounting": (Month.Status, {"closed"}),
    "approval request": (ApprovalRequest.Status, {"done", "rejected"}),
    "deletion of an account": (AccountDeletion.Status, {"erased"}),
    "message to a wallet app": (MessageStatus, {"delivered"}),
}


def deadlines() -> list[list[str]]:
    """Return the rows of the table, each with its subject."""
    text = (DOCS / "reliability.md").read_text().split("## Deadlines", 1)[1].split("\n## ", 1)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ][2:]
    for above, row in itertools.pairwise(rows):
        row[0] = row[0] or above[0]
    return rows


def test_every_state_that_is_not_final_has_a_deadline() -> None:
    stated: dict[str, set[str]] = defaultdict(set)
    for subject, state, *_ in deadlines():
        stated[subject] |= set(re.findall(r"`([^`]+)`", state))
    for subject, (states, ends) in STATES.items():
        assert stated[subject] == set(states.values) - ends, subject


@pytest.mark.parametrize("row", deadlines(), ids=lambda row: " ".join(row[:2]))
def test_every_alert_of_a_deadline_exists(row: list[str]) -> None:
    rules = (DOCS / "alerts/gateway.rules.yml").read_text()
    for name in re.findall(r"`(Gateway\w+)`", row[2]):
        assert f"- alert: {name}\n" in rules
