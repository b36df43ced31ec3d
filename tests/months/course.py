"""The course of the months: random acts, time, webhooks that may be lost, the product's own tasks, the comparison."""

import json
import random
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import stripe
from django.conf import settings
from django.db.models import Sum

from credits.models import CreditEntry
from gateway.common.errors import DomainError
from lab.months.model import Money, read_money
from payments.models import Clawback, Customer, Payout, StripeEvent
from payments.services import events, operations, reconciliation, standing, synchronisation
from payments.services.reconciliation import repairs
from payments.services.reconciliation.findings import Rule
from stripe_double.client import ControlError
from tests.months.clerk import CLERK, OFTEN, RARE, AnyScene
from tests.months.people import OWN, Person
from tests.payments.dashboard import Clerk
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import receive_event

_DAY = 86_400
# The part of the webhooks that arrive, and of these the part that arrives twice.
_ARRIVING, _TWICE = 0.5, 0.1
# The number of people whose promised price is remembered, in each half of a month.
_PROMISED = 12
# The findings that a clerk's actions explain.
_EXPLAINED = {Rule.INVOICE_WITHOUT_PAYOUT, Rule.FRAUD_WARNING, Rule.SUBSCRIPTIONS_TWO_LIVE}


class Course:
    """People at one Stripe account, and what was counted."""

    def __init__(self, double: DoubleAccount, store: Path, *, people: int, rate: int) -> None:
        self.double, self.store, self.rate = double, store, rate
        self.people = [Person(double) for _ in range(people)]
        self.counts: Counter[str] = Counter()
        self.own: Counter[str] = Counter()
        self.clerk: Counter[str] = Counter()
        self.findings: Counter[str] = Counter()
        self.named: set[str] = set()
        self.promises: dict[str, tuple[int | None, datetime]] = {}
        self._delivered: set[str] = set()
        self._delivered_at = double.now()

    def begin(self) -> None:
        for person in self.people:
            person.begin()
        self.deliver()

    def month(self, acting: float) -> None:
        """Let two halves of a month pass, each with `acting` acts for a person on average, and compare."""
        for _ in range(2):
            for person in random.choices(self.people, k=max(1, int(len(self.people) * acting))):
                self._act(person)
            self._promise()
            self.double.pass_time(random.randint(14, 16) * _DAY)
            self.deliver()
            self._keep_promises()
        self._tasks()
        self.compare(days=reconciliation.DAYS)

    # What happens

    def _act(self, person: Person) -> None:
        if random.random() < 0.1:
            self._break()
        if random.random() < 0.5:
            name = random.choice(OWN)
            self._try(self.own, name, getattr(person, name))
        else:
            rarely = random.random() < 0.05
            common = [name for name in CLERK if name not in RARE]
            name = random.choice(RARE if rarely else [*common, *OFTEN])
            self._try(self.clerk, name, lambda: CLERK[name](AnyScene(person.payer, Clerk(self.double))))
        self.double.controls.clear_faults()

    def _try(self, counts: Counter[str], name: str, act: Any) -> None:
        """Count the act; one that Stripe or the service refuses is counted as such."""
        try:
            act()
        except DomainError as error:
            self.counts[f"refused: {error.code}"] += 1
        except (stripe.StripeError, ControlError) as error:
            self.counts[f"impossible: {type(error).__name__}"] += 1
        except IndexError:
            self.counts["impossible: nothing to act on"] += 1
        else:
            counts[name] += 1

    def _break(self) -> None:
        """Let some requests to Stripe fail, or lose their answers."""
        controls = self.double.controls
        fault = random.choice((controls.error_after_commit, controls.timeout_after_commit))
        if random.random() < 0.5:
            controls.fail(random.choice((429, 500)), count=random.randint(1, 4))
        else:
            fault(count=random.randint(1, 3))
        self.counts["faults of Stripe"] += 1

    def deliver(self) -> None:
        """Process webhooks: some are lost, some arrive twice, and the order is any."""
        new = [
            event
            for event in self.double.webhooks(*synchronisation.EVENT_TYPES, since=self._delivered_at)
            if event["id"] not in self._delivered
        ]
        self._delivered, self._delivered_at = {event["id"] for event in new}, self.double.now()
        # No task but the one that asks for undelivered events learns of a deleted customer.
        arriving = [
            event for event in new if random.random() < _ARRIVING or event["type"] == "customer.deleted"
        ]
        arriving += [event for event in arriving if random.random() < _TWICE]
        random.shuffle(arriving)
        now = self.double.now()
        for event in arriving:
            row = receive_event(json.dumps(event).encode(), now=now)
            events.process(event_id=row.pk, now=now)
        self.counts["webhooks"] += len(arriving)
        self.counts["webhooks lost"] += len(new) - len({event["id"] for event in arriving})

    def _tasks(self) -> None:
        """Run what beat runs."""
        now = self.double.now()
        operations.resume_abandoned(now=now)
        events.process_due(now=now + timedelta(hours=7))
        synchronisation.refresh_subscriptions(now=now)
        repairs.pay_out_missed_invoices(now=now)
        repairs.claw_back_missed_money(now=now)

    # What is promised

    def _promise(self) -> None:
        """Write down what some people are told that their next invoice will charge."""
        self.promises = {}
        for person in random.sample(self.people, min(len(self.people), 3 * _PROMISED)):
            if len(self.promises) == _PROMISED:
                break
            report = standing.report(user=person.payer.user, now=self.double.now())
            customer = report.subscription.customer.stripe_customer_id
            if report.subscription.status == "active" and not self._has_others(customer):
                promise = (report.next_minor, self.double.now())
                self.promises[report.subscription.stripe_subscription_id] = promise
        self.counts["prices promised"] += len(self.promises)

    def _has_others(self, customer: str) -> bool:
        """Return whether another subscription may use the customer's balance first, or an invoice is still open."""
        live = self.double.v1.subscriptions.list({"customer": customer}).data
        waiting = self.double.v1.invoices.list({"customer": customer, "limit": 20}).data
        return len(live) != 1 or any(invoice.status in ("draft", "open") for invoice in waiting)

    def _keep_promises(self) -> None:
        for subscription, (promised, at) in self.promises.items():
            query = {"subscription": subscription, "created": {"gt": int(at.timestamp())}, "limit": 100}
            made = self.double.v1.invoices.list(query).data
            cycles = [row for row in made if row.billing_reason == "subscription_cycle"][::-1]
            if cycles and cycles[0].status == "paid":
                self.counts["promises kept"] += 1
                assert cycles[0].amount_due == (promised or 0), (subscription, promised, cycles[0].id)

    # What must be true

    def compare(self, *, days: int) -> None:
        """
        Compare every payout and every account with the reference.

        Raises:
            AssertionError: a difference that no finding names, or a finding that no act explains.
        """
        run = reconciliation.reconcile(now=self.double.now(), minutes=0, days=days)
        assert run is not None
        for finding in run.findings:
            self.findings[str(finding["rule"])] += 1
            self.named.update(str(name) for name in finding["ids"].values())
        unexplained = [finding for finding in run.findings if Rule(finding["rule"]) not in _EXPLAINED]
        assert not unexplained, unexplained[:5]
        books = read_money(self.store, product=settings.STRIPE_PRODUCT_ID)
        self._compare_invoices(books)
        self._compare_accounts(books)
        self.counts["comparisons"] += 1

    def _compare_invoices(self, books: dict[str, Money]) -> None:
        payouts = {row.stripe_invoice_id: row for row in Payout.objects.all()}
        taken = dict(
            Clawback.objects.values_list("payout__stripe_invoice_id")
            .annotate(total=Sum("credits"))
            .order_by()
        )
        unnamed = []
        for invoice in books.keys() | payouts.keys():
            money, payout = books.get(invoice), payouts.get(invoice)
            have = (
                (
                    payout.amount_minor,
                    payout.charged_minor - payout.returned_minor,
                    payout.credits - taken.get(invoice, 0),
                )
                if payout
                else (0, 0, 0)
            )
            is_due = money is not None and money.is_due and money.ours > 0
            wanted = (money.ours, money.net, money.credits(self.rate)) if money and is_due else (0, 0, 0)
            collected = money.ours if money else 0
            if have != wanted or (collected and not payout):
                self.counts["invoices that differ"] += 1
                if invoice not in self.named:
                    unnamed.append((invoice, have, wanted, money))
        assert not unnamed, f"{len(unnamed)} differences without a finding: {unnamed[:3]}"

    def _compare_accounts(self, books: dict[str, Money]) -> None:
        """Compare each person's balance with the credits of their customers' invoices."""
        owners = dict(Customer.objects.values_list("stripe_customer_id", "user_id"))
        due: Counter[int] = Counter()
        for money in books.values():
            if money.customer in owners:
                due[owners[money.customer]] += money.credits(self.rate)
        rows = CreditEntry.objects.values_list("account__user").annotate(total=Sum("amount")).order_by()
        have = dict(rows)
        wrong = {
            user: (have.get(user, 0), wanted) for user, wanted in due.items() if have.get(user, 0) != wanted
        }
        assert not wrong, wrong

    def end(self) -> dict[str, Any]:
        """Lead everybody back to a paid month, compare all of the time, and return the figures."""
        for person in self.people:
            self.counts["steps back to a paid month"] += person.heal()
        self.deliver()
        self._tasks()
        self.compare(days=2_000)
        books = read_money(self.store, product=settings.STRIPE_PRODUCT_ID)
        return {
            "invoices": len(books),
            "collected": sum(money.collected for money in books.values()),
            "of our product": sum(money.ours for money in books.values()),
            "returned": sum(money.returned for money in books.values()),
            "payouts": Payout.objects.count(),
            "clawbacks": Clawback.objects.count(),
            "events": StripeEvent.objects.count(),
            "credits": CreditEntry.objects.aggregate(total=Sum("amount"))["total"],
            "counts": dict(self.counts),
            "own acts": dict(self.own),
            "clerk's acts": dict(self.clerk),
            "findings": dict(self.findings),
        }


def play(
    double: DoubleAccount, store: Path, *, people: int, months: int, rate: int, acting: float
) -> dict[str, Any]:
    """Run the course and return its figures."""
    began = time.monotonic()
    course = Course(double, store, people=people, rate=rate)
    course.begin()
    for month in range(months):
        course.month(acting)
        seconds = time.monotonic() - began
        print(f"month {month + 1} of {months}: {Payout.objects.count()} payouts, {seconds:.0f} s", flush=True)  # noqa: T201
    return {"people": people, "months": months, **course.end(), "seconds": round(time.monotonic() - began)}
