"""
Months of many people whose cards fail and are healed at random, and who make calls: what was collected is paid out,
once and exactly, and what comes back of the calls is exact to the fraction.

`PAYMENTS_AT_LENGTH=24x200` runs it for 24 months and 200 people; the suite has a short form of it.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
import urllib3

from credits.models import Allowance, CreditEntry, EntrySource
from credits.services.reconciliation import find_differences
from gateway.common.errors import DomainError
from payments.errors import NoSubscription
from payments.models import Customer, Payout, Subscription
from payments.services import customers, reconciliation, standing, synchronisation
from payments.services.reconciliation import repairs
from payments.services.snapshots import EVENT_TYPES
from payments.services.standing import NextStep
from payments.stripe import get_billing_client
from tests.factories import UserFactory
from tests.payments.payers import Payer
from tests.payments.spending import Spending
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, VISA, DoubleAccount
from tests.payments.webhook_events import process_events, webhook_body

MONTHS, PEOPLE = map(int, os.environ.get("PAYMENTS_AT_LENGTH", "3x6").split("x"))
# Of rows that one transaction writes hundreds of times, every version stays until it ends.
pytestmark = pytest.mark.django_db(transaction=PEOPLE > 20)
DAY = 86_400
# The number of webhooks of four types that arrive; the hourly and daily tasks find the rest.
_ARRIVING = 0.5


def _amount() -> int:
    return random.randint(500, 20_000)


class Person:
    """A payer, with everything that may happen to them and that they may do."""

    def __init__(self, double: DoubleAccount) -> None:
        self.double = double
        self.payer = Payer(double, UserFactory.create())

    def try_upsert(self, amount: int) -> str:
        """Ask for the subscription; return what came of it."""
        try:
            return str(self.payer.upsert(amount).status)
        except DomainError as error:
            if error.status >= 500:
                raise
            return error.code

    def capture(self, card: str) -> None:
        """Capture a card, and make it the default as its webhook does."""
        customers.setup_secret(user=self.payer.user, now=self.double.now())
        customer_id = self.payer.customer.stripe_customer_id
        self.double.capture(customer_id, card)
        get_billing_client().use_newest_card(customer_id=customer_id)

    def cards(self) -> list[str]:
        """Return the cards of the customer."""
        customer_id = self.payer.customer.stripe_customer_id
        return [str(row.id) for row in self.double.v1.payment_methods.list({"customer": customer_id}).data]

    # Mishaps

    def decline(self) -> None:
        for card in self.cards():
            self.double.decline_from_now(card, "insufficient_funds")

    def recover(self) -> None:
        for card in self.cards():
            self.double.decline_from_now(card, None)

    def get_a_card_that_needs_confirmation(self) -> None:
        self.capture(NEEDS_CONFIRMATION)

    def get_a_card_that_fails(self) -> None:
        self.capture(DECLINES)

    def detach(self) -> None:
        for card in self.cards():
            self.double.v1.payment_methods.detach(card)

    def be_deleted(self) -> None:
        if not get_billing_client().is_customer_deleted(customer_id=self.payer.customer.stripe_customer_id):
            self.double.delete_customer(self.payer.customer.stripe_customer_id)

    # Decisions of the person

    def change(self) -> None:
        self.try_upsert(_amount())

    def cancel(self) -> None:
        with suppress(NoSubscription):
            self.payer.cancel(immediately=random.random() < 0.5)

    def pay_on_stripes_page(self) -> None:
        page = get_billing_client().invoices(
            customer_id=self.payer.customer.stripe_customer_id, limit=3, after=""
        )
        for invoice in page.invoices:
            if invoice.status == "open":
                headers = {"Content-Type": "application/x-www-form-urlencoded"}
                body = f"payment_method={VISA}"
                urllib3.request("POST", invoice.page_url, body=body, headers=headers, redirect=False)

    def heal(self) -> None:
        """Do what the report asks for, until the subscription is active."""
        amount = self.payer.subscription.amount_minor
        for _ in range(6):
            report = standing.report(user=self.payer.user, now=self.double.now())
            if report.next_step == NextStep.NOTHING:
                return
            if report.next_step == NextStep.CONFIRM:
                self.double.confirm(report.client_secret)
            elif self.try_upsert(amount) != "active":
                self.capture(VISA)
        raise AssertionError(f"no way back from {report}")


def _random_act(person: Person) -> Callable[[], None]:
    mishaps = (
        person.decline,
        person.decline,
        person.get_a_card_that_needs_confirmation,
        person.get_a_card_that_fails,
        person.detach,
    )
    decisions = (
        person.heal,
        person.heal,
        person.recover,
        person.change,
        person.cancel,
        person.pay_on_stripes_page,
    )
    return random.choice([*mishaps, *decisions] * 3 + [person.be_deleted])


def _deliver(double: DoubleAccount, since: datetime) -> None:
    """Process some of the webhooks of the time since then, in any order."""
    types = random.sample(EVENT_TYPES, 4)
    query = {"types": types, "limit": 100, "created": {"gte": int(since.timestamp())}}
    rows = [row for row in double.v1.events.list(query).data if random.random() < _ARRIVING]
    random.shuffle(rows)
    process_events(map(webhook_body, rows), now=double.now())


def _run_tasks(now: datetime) -> None:
    """Run what beat runs: every hour, and every night."""
    synchronisation.refresh_subscriptions(now=now)
    repairs.pay_out_missed_invoices(now=now)


@pytest.mark.timeout(0)
def test_what_was_collected_is_paid_out_whatever_failed_and_was_healed(
    double: DoubleAccount, rates: dict[str, int]
) -> None:
    seed = int(os.environ.get("PAYMENTS_SEED", random.randrange(2**32)))
    random.seed(seed)
    print(f"\nPAYMENTS_SEED={seed}")  # noqa: T201 (shown where it fails)
    people = [Person(double) for _ in range(PEOPLE)]
    for person in people:
        person.capture(VISA)
        assert person.try_upsert(_amount()) == "active"
    spending = Spending([person.payer.user for person in people])
    counts: Counter[str] = Counter()
    for half_month in range(2 * MONTHS):
        since = double.now()
        for person in random.sample(people, max(1, PEOPLE // 8)):
            act = _random_act(person)
            counts[act.__name__] += 1
            act()
        spending.make_calls(double.now())
        double.pass_time(random.randint(14, 16) * DAY)
        _deliver(double, since)
        _run_tasks(double.now())
        print(f"{half_month + 1} of {2 * MONTHS} half months", flush=True)  # noqa: T201
    for person in people:
        person.heal()
    _run_tasks(double.now())
    _assert_exact(double, people, rates["usd"], spending)
    print(  # noqa: T201 (the figures of the long form)
        f"\n{MONTHS} months, {PEOPLE} people: {Payout.objects.count()} payouts, "
        f"{Subscription.objects.count()} subscriptions, {Customer.objects.count()} customers, {dict(counts)}; "
        f"{len(spending.costs)} calls, {spending.undone} undone and settled again, "
        f"{_total(EntrySource.CREDITS_BACK)} credits back"
    )


def _total(source: EntrySource) -> int:
    return sum(CreditEntry.objects.filter(source=source).values_list("amount", flat=True))


def _assert_exact(double: DoubleAccount, people: list[Person], rate: int, spending: Spending) -> None:
    charges: Counter[int] = Counter()
    owners = dict(Customer.objects.values_list("stripe_customer_id", "user_id"))
    for charge in double.v1.charges.list({"limit": 100}).auto_paging_iter():
        if charge.status == "succeeded":
            charges[owners[charge.customer]] += charge.amount
    paid_invoices: dict[str, Any] = {
        row.id: row
        for row in double.v1.invoices.list({"limit": 100, "status": "paid"}).auto_paging_iter()
        if row.amount_paid
    }
    assert {row.stripe_invoice_id for row in Payout.objects.all()} == set(paid_invoices)
    for person in people:
        payouts = person.payer.payouts
        assert sum(row.amount_minor for row in payouts) == charges[person.payer.user.pk]
        paid_out = sum(row.amount_minor * rate // 100 for row in payouts)
        assert person.payer.balance == paid_out + spending.assert_exact(person.payer.user)
        for row in payouts:
            period = max((line.period for line in paid_invoices[row.stripe_invoice_id].lines.data), key=_end)
            assert (row.period_start.timestamp(), row.period_end.timestamp()) == (period.start, period.end)
        newest, allowance = payouts[-1], Allowance.objects.get(user=person.payer.user)
        assert (allowance.starts_at, allowance.ends_at) == (newest.period_start, newest.period_end)
    run = reconciliation.reconcile(now=double.now())
    assert run is not None
    assert run.counts["findings"] == 0, run.counts
    assert find_differences() == []


def _end(period: Any) -> int:
    return int(period.end)
