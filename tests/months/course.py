"""The course of the months: random acts, time, webhooks that may be lost, the product's own tasks, the comparison."""

import json
import math
import random
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import stripe

from gateway.common.errors import DomainError
from payments.models import CreditPack, Payout
from payments.services import (
    events,
    operations,
    purchases,
    reconciliation,
    standing,
    synchronisation,
    top_ups,
)
from payments.services.reconciliation import repairs
from payments.services.snapshots import EVENT_TYPES
from stripe_double.client import ControlError
from tests.months.clerk import CLERK, OFTEN, RARE, AnyScene
from tests.months.comparison import Comparison
from tests.months.people import OWN, Person, any_pack
from tests.payments.buying import new_pack
from tests.payments.dashboard import Clerk
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import receive_event

_DAY = 86_400
# The part of the webhooks that arrive which arrives twice.
_TWICE = 0.1
# The number of people whose promised price is remembered, in each half of a month.
_PROMISED = 12
_PACKS = 3


class Course:
    """
    People at one Stripe account, and what was counted.

    Half a month has one of `days`, and `arriving` is the part of the webhooks that arrive.
    """

    def __init__(
        self,
        double: DoubleAccount,
        store: Path,
        *,
        people: int,
        rate: int,
        days: range = range(14, 17),
        arriving: float = 0.5,
    ) -> None:
        self._days, self._arriving = days, arriving
        self.double, self.comparison = double, Comparison(double, store, rate=rate)
        self.people = [Person(double) for _ in range(people)]
        self.counts: Counter[str] = Counter()
        self.own: Counter[str] = Counter()
        self.clerk: Counter[str] = Counter()
        self.promises: dict[str, tuple[int | None, datetime]] = {}
        self._delivered: set[str] = set()
        self._delivered_at = double.now()

    def begin(self) -> None:
        CreditPack.objects.update(is_offered=False)
        for _ in range(_PACKS):
            pack = new_pack(amount=self._new_price())
            self.comparison.bonuses[pack.amount_minor] = pack.bonus_credits
        for person in self.people:
            person.begin()
        self.deliver()

    def month(self, acting: float) -> None:
        """Let two halves of a month pass, each with `acting` acts for a person on average, and compare."""
        for _ in range(2):
            acts = max(1, int(len(self.people) * acting)) if acting else 0
            for person in random.choices(self.people, k=acts):
                self._act(person)
            self._top_up()
            self._promise()
            self.double.pass_time(random.choice(self._days) * _DAY)
            self.deliver()
            self._keep_promises()
            # Beat runs them at least every day. Stripe keeps events for 30 days, fewer than two halves may have.
            self._tasks()
        self.comparison.compare(days=reconciliation.DAYS)
        if random.random() < 0.2:
            self._change_pack()

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

    def _top_up(self) -> None:
        """Run the task that buys automatically; requests to Stripe may fail, and the next run continues."""
        if random.random() < 0.3:
            self._break()
        self._try(self.own, "a run of automatic top-up", lambda: top_ups.run(now=self.double.now()))
        self.double.controls.clear_faults()

    def _change_pack(self) -> None:
        """Offer a pack with another price and bonus."""
        pack = any_pack()
        pack.amount_minor, pack.bonus_credits = self._new_price(), random.randint(1, 5_000)
        pack.save()
        self.comparison.bonuses[pack.amount_minor] = pack.bonus_credits
        self.counts["packs changed"] += 1

    def _new_price(self) -> int:
        """Return a price that no pack had, and that nobody chooses as an amount."""
        return random.choice(
            [price for price in range(501, 5_000, 10) if price not in self.comparison.bonuses]
        )

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
            for event in self.double.webhooks(*EVENT_TYPES, since=self._delivered_at)
            if event["id"] not in self._delivered
        ]
        self._delivered, self._delivered_at = {event["id"] for event in new}, self.double.now()
        # No task but the one that asks for undelivered events learns of a deleted customer.
        arriving = [
            event for event in new if random.random() < self._arriving or event["type"] == "customer.deleted"
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
        purchases.close_unpaid(now=now)
        top_ups.run(now=now + timedelta(minutes=20))
        events.process_due(now=now + timedelta(hours=7))
        synchronisation.refresh_subscriptions(now=now)
        repairs.pay_out_missed_invoices(now=now)
        repairs.claw_back_missed_money(now=now)

    # Promises

    def _promise(self) -> None:
        """Write down the next charge that the answers promise to some people."""
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

    def end(self) -> dict[str, Any]:
        """Lead everybody back to a paid month, compare all of the time, and return the figures."""
        for person in self.people:
            self.counts["steps back to a paid month"] += person.heal()
        self.deliver()
        self._tasks()
        self.comparison.compare(days=2_000)
        return {
            **self.comparison.figures(),
            "counts": dict(self.counts),
            "own acts": dict(self.own),
            "clerk's acts": dict(self.clerk),
        }


def play(
    double: DoubleAccount,
    store: Path,
    *,
    people: int,
    months: int,
    rate: int,
    acting: float,
    seconds: float = math.inf,
) -> dict[str, Any]:
    """Run the course and return its figures; no month begins after this many seconds."""
    began = time.monotonic()
    course = Course(double, store, people=people, rate=rate)
    course.begin()
    played = 0
    while played < months and time.monotonic() - began < seconds:
        course.month(acting)
        played += 1
        passed = time.monotonic() - began
        print(f"month {played} of {months}: {Payout.objects.count()} payouts, {passed:.0f} s", flush=True)  # noqa: T201
    return {"people": people, "months": played, **course.end(), "seconds": round(time.monotonic() - began)}
