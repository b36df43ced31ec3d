"""
Every state of a subscription, met with every kind of card: the response, the visible state, and the way back.

The tables in docs/subscriptions.md are made here: `WRITE_SUBSCRIPTIONS=1 pytest` on this file writes them.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from gateway.common.errors import DomainError
from payments.errors import NoSubscription
from payments.models import Subscription
from payments.services import customers, standing, synchronisation
from payments.services.reconciliation import repairs
from payments.services.snapshots import EVENT_TYPES
from payments.stripe import get_billing_client
from rewards.queries import current_rewards
from tests.factories import UserFactory
from tests.payments.payers import Payer
from tests.payments.rows import final_rows
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, VISA, DoubleAccount
from tests.payments.tables import assert_page_has, table
from tests.payments.webhook_events import process_events
from tests.staff import browser_of, member

pytestmark = pytest.mark.django_db
PAGE = Path(__file__).parents[3] / "docs" / "subscriptions.md"
DAY = 86_400
AMOUNT = 2_550
CARDS = {"pays": VISA, "is declined": DECLINES, "asks the holder": NEEDS_CONFIRMATION}
STATES = [status.value for status in Subscription.Status]
_MOST_STEPS = 4


@dataclass
class Case:
    """A person whose subscription is in `state`, to be met with `card` on file, by one of `ACTS`."""

    state: str
    card: str
    act: str
    payer: Payer


def _upsert(payer: Payer) -> str:
    try:
        return f"200, {payer.upsert(AMOUNT).status}"
    except DomainError as error:
        return f"{error.status} `{error.code}`"


def _cancel(payer: Payer, *, immediately: bool) -> str:
    try:
        row = payer.cancel(immediately=immediately)
    except NoSubscription as error:
        return f"{error.status} `{error.code}`"
    return f"200, {row.status}" + (", ends with its period" if row.cancels_at_period_end else "")


ACTS: dict[str, Callable[[Payer], str]] = {
    "upsert": _upsert,
    "cancel with the period": lambda payer: _cancel(payer, immediately=False),
    "cancel at once": lambda payer: _cancel(payer, immediately=True),
}


def _cases(double: DoubleAccount) -> Iterator[Case]:
    for state in STATES:
        for act in ACTS:
            for card in CARDS if act == "upsert" else ["pays"]:
                yield Case(state, card, act, Payer(double, UserFactory.create()))


def _begin(double: DoubleAccount, cases: list[Case], *states: str) -> None:
    """Subscribe those who are to come to these states; later, the card that pays is declined."""
    for case in cases:
        if case.state in states:
            fails = case.state.startswith("incomplete")
            case.payer.with_card(DECLINES if fails else VISA)
            assert _upsert(case.payer) == ("402 `card-declined`" if fails else "200, active")


def _decline(double: DoubleAccount, case: Case) -> None:
    customer = case.payer.customer.stripe_customer_id
    for card in double.v1.payment_methods.list({"customer": customer}).data:
        double.decline_from_now(card.id, "insufficient_funds")


def _bring_about(double: DoubleAccount, cases: list[Case]) -> None:
    """Let 72 days pass in which each case comes to its state, without any webhook."""
    double.controls.after_retries("unpaid")
    _begin(double, cases, "unpaid")
    for case in cases:
        if case.state == "unpaid":
            _decline(double, case)
    double.pass_time(40 * DAY)
    _begin(double, cases, "past_due")
    for case in cases:
        if case.state == "past_due":
            _decline(double, case)
    double.pass_time(30 * DAY)
    _begin(double, cases, "incomplete_expired")
    double.pass_time(int(1.5 * DAY))
    _begin(double, cases, "incomplete", "trialing", "active", "paused", "canceled")
    for case in cases:
        identifier = case.payer.subscription.stripe_subscription_id
        if case.state in {"trialing", "paused"}:
            double.controls.set_status(identifier, case.state)
        if case.state == "canceled":
            double.v1.subscriptions.cancel(identifier)


def _shown_state(case: Case, now: datetime, staff: Client) -> dict[str, str]:
    """Return what the person sees, and what staff read in the newest subscription's line on the person's page."""
    user, report = case.payer.user, standing.report(user=case.payer.user, now=now)
    rewards = current_rewards(user=user, now=now)
    page = staff.get(reverse("admin:users_user_change", args=[user.pk])).content.decode()
    line = page.split(report.subscription.stripe_subscription_id)[1].split("</tr>")[0]
    cells = [
        re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", line, re.DOTALL)
    ]
    status, *_amount_and_end, then = cells
    return {
        "the dashboard shows": "subscriber" if rewards.is_subscriber else "no subscriber",
        "`status`, `nextStep`": f"{report.subscription.status}, `{report.next_step}`",
        "the staff page shows": f"{status}, {then}",
    }


def _capture(payer: Payer, card: str) -> None:
    """Capture a card, and make it the default as its webhook does."""
    payer.with_card(card)
    get_billing_client().use_newest_card(customer_id=payer.customer.stripe_customer_id)


def _come_back(double: DoubleAccount, case: Case, answer: str) -> str:
    """Follow the responses until the subscription is active; return the steps."""
    steps: list[str] = []
    for _ in range(_MOST_STEPS):
        if answer == "200, active":
            return ", ".join(steps) or "it is"
        if "authentication-required" in answer:
            report = standing.report(user=case.payer.user, now=double.now())
            double.confirm(report.client_secret)
            steps.append("confirm")
        elif answer == "200, trialing":
            if double.now() < case.payer.subscription.current_period_end:
                double.pass_time(32 * DAY)
            steps.append("the trial ends")
        elif "card-declined" in answer:
            _capture(case.payer, VISA)
            steps.append("another card")
        answer = _upsert(case.payer)
        steps.append("upsert")
    raise AssertionError(f"{case.state}, {case.card}: no way back by {steps}: {answer}")


@pytest.mark.usefixtures("short_sidebar")
def test_the_tables_of_states_are_true_and_every_owner_gets_back_to_active(
    double: DoubleAccount, rates: dict[str, int]
) -> None:
    cases = list(_cases(double))
    _bring_about(double, cases)
    now = double.now()

    # Without any webhook, what runs every day and every hour finds all of it.
    synchronisation.refresh_subscriptions(now=now)
    repairs.pay_out_missed_invoices(now=now)
    assert [case.payer.subscription.status for case in cases] == [case.state for case in cases]
    staff = browser_of(member("support"))
    alike = {case.state: case for case in cases if case.act == "upsert"}
    shown_states = {state: _shown_state(case, now, staff) for state, case in alike.items()}
    before = final_rows()

    # Webhooks, in any order, change nothing about that.
    customer_ids = {case.payer.customer.stripe_customer_id for case in cases if case.act != "upsert"}
    bodies = [json.dumps(event) for event in double.webhooks(*EVENT_TYPES)]
    about_them = [body.encode() for body in bodies if any(customer in body for customer in customer_ids)]
    random.shuffle(about_them)
    process_events(about_them, now=now)
    assert final_rows() == before

    by_state: dict[str, dict[str, str]] = {
        state: {"state": f"`{state}`", **shown_states[state]} for state in STATES
    }
    by_card: list[dict[str, str]] = []
    last: list[tuple[Case, str]] = []
    for case in cases:
        _capture(case.payer, CARDS[case.card])
        assert customers.setup_secret(user=case.payer.user, now=now).startswith("seti_")
        result = ACTS[case.act](case.payer)
        if case.act == "upsert":
            by_card.append(
                {"state": f"`{case.state}`", "the newest card": case.card, "upsert returns": result}
            )
        else:
            by_state[case.state][case.act] = result
            result = _upsert(case.payer)
        last.append((case, result))
    # Last those for whom time has to pass.
    for case, result in sorted(last, key=lambda item: "trialing" in item[1]):
        way = _come_back(double, case, result)
        if case.act == "upsert":
            row = next(
                row
                for row in by_card
                if (row["state"], row["the newest card"]) == (f"`{case.state}`", case.card)
            )
            row["to be active"] = way
    tables = {"states": table(list(by_state.values())), "cards": table(by_card)}
    assert_page_has(PAGE, tables, variable="WRITE_SUBSCRIPTIONS")
