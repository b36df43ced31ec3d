"""
A clerk's actions at Stripe's dashboard: the owner's responses, charges and payouts, and the way back.

The table in docs/stripe-dashboard.md is made here: `WRITE_STRIPE_DASHBOARD=1 pytest` on this file writes it.
"""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.common.errors import DomainError
from payments.models import Payout, PayoutRate, StripeEvent
from payments.services import standing
from payments.services.reconciliation.findings import Rule
from payments.services.snapshots import EVENT_TYPES
from payments.stripe import get_billing_client
from tests.database import rewrite
from tests.factories import UserFactory
from tests.payments.dashboard import Clerk
from tests.payments.dashboard_actions import ACTIONS, COST, DAY, Scene
from tests.payments.payers import Payer
from tests.payments.reconciling import findings
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.tables import assert_page_has, table
from tests.payments.webhook_events import process_events

pytestmark = pytest.mark.django_db
PAGE = Path(__file__).parents[3] / "docs" / "stripe-dashboard.md"
_MOST_STEPS = 4


def _money(minor: int | None) -> str:
    return "none" if minor is None else f"{minor / 100:.2f}"


class Action:
    """One action on the subscription of a payer of its own, and what followed."""

    def __init__(self, name: str, scene: Scene) -> None:
        self.name, self.scene, self.payer = name, scene, scene.payer
        self.customer = scene.customer
        self.row: dict[str, str] = {"a clerk makes": name}
        self.promised: int | None = None
        self.steps: list[str] = []
        # The differences from an active subscription that renews, gives ten credits for a cent, and has no finding.
        self.otherwise: list[str] = []

    def perform(self) -> None:
        ACTIONS[self.name](self.scene)

    def tell(self) -> None:
        """Write down the owner's responses, and remember the promised price."""
        report = standing.report(user=self.payer.user, now=self.scene.double.now())
        self.promised = report.next_minor
        self.is_alone = not report.others
        others = "" if self.is_alone else f", {len(report.others)} other"
        row = report.subscription
        self.subscription = row.stripe_subscription_id
        self.row["`paidCost`"] = _money(report.paid_minor)
        self.row["`nextCost`"] = _money(report.next_minor)
        state, total = f"{row.status}, `{report.next_step}`{others}", self.payer.quota().total
        if state != "active, `nothing`":
            self.otherwise.append(state)
        if total != 10 * (report.paid_minor or 0):
            self.otherwise.append(f"{total} credits")
        if row.outlook() != "renews":
            self.otherwise.append(f"staff read: {row.outlook()}")

    def charged_next(self) -> int:
        """Return what the next invoice of the told subscription has asked for."""
        query = {"subscription": self.subscription, "limit": 1}
        newest = self.scene.v1.invoices.list(query).data[0]
        assert newest.billing_reason == "subscription_cycle"
        return int(newest.amount_due)

    def buy(self) -> None:
        """Follow the responses until an upsert is accepted; remember the steps."""
        for _ in range(_MOST_STEPS):
            try:
                self.bought = self.payer.upsert(COST)
            except DomainError as error:
                if error.code in {"payment-method-required", "card-declined"}:
                    self.payer.with_card()
                    self.steps.append("a card")
                elif error.members.get("reason") in {"scheduled-subscription", "shared-subscription"}:
                    self.payer.cancel(immediately=True)
                    self.steps.append("cancel at once")
                else:
                    raise
            else:
                self.steps.append("upsert")
                return

    def way_back(self) -> str:
        """Return the steps, which have led to one subscription with a paid month."""
        report = standing.report(user=self.payer.user, now=self.scene.double.now())
        assert (report.subscription, report.next_step, report.others) == (self.bought, "nothing", []), (
            self.name
        )
        assert report.subscription.status == "active"
        if report.paid_minor:
            return ", ".join(self.steps)
        assert report.subscription.latest_invoice == "balance", self.name
        return "once the balance is used up"


def _process(double: DoubleAccount, known: set[str], *, types: tuple[str, ...] = EVENT_TYPES) -> None:
    """Process the new events of these types, by default of those that the endpoint subscribes to."""
    new = [event for event in double.webhooks(*EVENT_TYPES) if event["id"] not in known]
    known |= {event["id"] for event in new}
    wanted = [json.dumps(event).encode() for event in new if event["type"] in types]
    process_events(wanted, now=double.now())
    assert not StripeEvent.objects.exclude(status="processed").exists()


def _assert_every_cent_is_accounted_for(double: DoubleAccount, found_rows: list[dict[str, object]]) -> None:
    """Assert that every collected cent for our product is paid out, or its invoice a finding."""
    found = str([finding["ids"] for finding in found_rows])
    paid_out = {payout.stripe_invoice_id: payout.charged_minor for payout in Payout.objects.all()}
    client = get_billing_client()
    for invoice in double.v1.invoices.list({"status": "paid", "limit": 100}).auto_paging_iter():
        state = client.retrieve_invoice(invoice_id=invoice.id)
        collected = state.collected_minor + state.tax_minor + state.other_minor
        if state.is_ours and state.collected_minor:
            assert paid_out.get(invoice.id) == collected or invoice.id in found, invoice.id
        else:
            assert invoice.id not in paid_out


def test_the_table_of_actions_is_correct_and_every_state_leads_back_to_a_paid_month(
    double: DoubleAccount, rates: dict[str, int]
) -> None:
    rewrite(PayoutRate.objects.filter(currency="usd"), credits_per_major_unit=1_000)
    # A month of 30 days, so that prorations are the same whenever the test runs.
    double.controls.set_clock(int(datetime(2031, 6, 1, 12, tzinfo=UTC).timestamp()))
    known: set[str] = set()
    actions = _after_payment(double, known)
    double.pass_time(10 * DAY)
    for action in actions:
        action.perform()
    _process(double, known)
    for action in actions:
        action.tell()
    at_once = findings(double)

    # A month later: no response has promised another price than the next invoice.
    double.pass_time(22 * DAY)
    _process(double, known)
    later = findings(double)
    _assert_every_cent_is_accounted_for(double, later)
    for action in actions:
        if action.promised is not None:
            assert action.charged_next() == action.promised, action.name
        names = {str(one["rule"]) for one in [*at_once, *later] if action.customer in _owners(double, one)}
        action.otherwise += [f"finding `{name}`" for name in sorted(names)]
    for action in actions:
        action.buy()
    _process(double, known)
    for action in actions:
        if (way := action.way_back()) != "upsert":
            action.otherwise.append(f"paid month: {way}")
        action.row["otherwise"] = ", ".join(action.otherwise)
    leftover = {str(one["rule"]) for one in findings(double)}
    assert leftover <= {Rule.INVOICE_WITHOUT_PAYOUT, Rule.FRAUD_WARNING}
    assert_page_has(
        PAGE, {"actions": table([action.row for action in actions])}, variable="WRITE_STRIPE_DASHBOARD"
    )


def _after_payment(double: DoubleAccount, known: set[str]) -> list[Action]:
    payers = [Payer(double, UserFactory.create()).with_card() for _ in ACTIONS]
    for payer in payers:
        payer.upsert(COST)
    _process(double, known, types=("invoice.paid",))
    return [Action(name, Scene(payer, Clerk(double))) for name, payer in zip(ACTIONS, payers, strict=True)]


def _owners(double: DoubleAccount, finding: dict[str, object]) -> set[str]:
    """Return the customers that a finding is about."""
    ids = finding["ids"]
    assert isinstance(ids, dict)
    if "customer" in ids:
        return {ids["customer"]}
    return {str(double.v1.invoices.retrieve(ids["invoice"]).customer)} if "invoice" in ids else set()
