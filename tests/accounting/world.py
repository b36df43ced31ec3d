"""A service and its Stripe that live through months of a past year: people pay, earn, use, and want money back."""

import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Sum
from django.utils import timezone

from accounting.models import CoinRate, Month
from accounting.services import closing
from credits.models import CreditAccount, CreditEntry
from credits.queries import debt_terms
from credits.services import entries, holds
from gateway.staff import approvals
from payments.models import Payout, StripeEvent
from relay.models import Attempt, RelayTransaction
from tests.credits.holding import place_hold
from tests.database import tamper
from tests.factories import RelayerFactory, UserFactory, make
from tests.payments.payers import Payer
from tests.payments.webhook_events import process_events
from tests.staff import member

_GWEI = 10**9
# Rows that PostgreSQL's clock dates.
_DATED = ("credits_entry", "credits_hold", "payments_moneyreturn")


class World:
    """One random history; its clock is that of the Stripe account."""

    def __init__(self, stripe: Any, people: int) -> None:
        # A `FakeBilling`, or another account with the same controls.
        self.stripe, self.chance = stripe, random.Random(random.random())
        self.payers = [Payer(stripe, UserFactory.create()).with_card() for _ in range(people)]
        for payer in self.payers:
            entries.open_account(user_id=payer.user.pk)
        self.relayer = RelayerFactory.create()
        self.sent = 0
        self.finance, self.operations = member("finance"), member("operations")
        self.charged: dict[int, int] = {}

    @property
    def now(self) -> datetime:
        now: datetime = self.stripe.now()
        return now

    @contextmanager
    def dated(self) -> Iterator[None]:
        """Give what the block writes the world's time."""
        began = timezone.now()
        yield
        for table in _DATED:
            tamper(f"UPDATE {table} SET created_at = %s WHERE created_at >= %s", self.now, began)  # noqa: S608

    def move_to(self, moment: datetime) -> None:
        """Let time pass, and apply Stripe's events on the way, in steps of a few hours."""
        while self.now < moment:
            step = min(moment - self.now, timedelta(hours=self.chance.randint(6, 72)))
            self.stripe.pass_time(int(step.total_seconds()) or 1)
            self.deliver()

    def deliver(self) -> None:
        new, self.sent = self.stripe.events[self.sent :], len(self.stripe.events)
        if new:
            with self.dated():
                process_events(new, now=self.now)
            assert not StripeEvent.objects.exclude(status="processed").exists()

    def live(self) -> None:
        """Do something, at the world's time."""
        payer = self.chance.choice(self.payers)
        move = self.chance.choice(
            [self.subscribe, self.earn, self.earn, self.call, self.call, self.call, self.call, self.refund,
             self.dispute, self.adjust, self.reverse]
        )  # fmt: skip
        with self.dated():
            move(payer)
        self.deliver()

    def subscribe(self, payer: Payer) -> None:
        if not payer.user.subscriptions.exists():
            payer.upsert(self.chance.randint(500, 20_000), self.chance.choice(["usd", "eur"]))

    def earn(self, payer: Payer) -> None:
        entries.grant(
            user=payer.user, credits=self.chance.randint(1, 5_000), source="SURVEYS",
            key=f"earning:test:{secrets.token_hex(8)}",
        )  # fmt: skip

    def adjust(self, payer: Payer) -> None:
        moved = self.chance.choice([-1, 1]) * self.chance.randint(1, 2_000)
        entries.adjust(user=payer.user, credits=moved, key=secrets.token_hex(8), actor=None, reason="test")

    def call(self, payer: Payer) -> None:
        """Relay a call: a hold, its charge, and an attempt that was mined."""
        account = CreditAccount.objects.get(user=payer.user)
        limit = debt_terms([(payer.user.pk, 500)])[0].limit
        cost = self.chance.randint(1, max(1, min(5_000, account.available + limit)))
        if account.available + limit < cost:
            return
        hold = place_hold(user=payer.user, credits=cost, key=secrets.token_hex(8), debt_limit=500).hold
        digest = "0x" + secrets.token_hex(32)
        call = make(
            RelayTransaction, user=payer.user, digest=digest, relayer=self.relayer, hold=hold, transaction_hash=digest,
            expected_cost=cost, real_cost=cost, status="Success", created_at=self.now, settled_at=self.now,
        )  # fmt: skip
        make(
            Attempt, is_mined=True, relay_transaction=call, transaction_hash=digest, max_fee_per_gas_wei=9 * _GWEI,
            gas_used=self.chance.randint(21_000, 100_000),
            effective_gas_price_wei=self.chance.randint(1, 9 * _GWEI), created_at=self.now, mined_at=self.now,
        )  # fmt: skip
        if self.chance.random() < 0.9:
            holds.close(costs={hold.pk: cost})
            self.charged[hold.pk] = cost

    def reverse(self, payer: Payer) -> None:
        if self.charged:
            hold_id = self.chance.choice(list(self.charged))
            holds.reopen(hold_ids=[hold_id])
            cost = self.charged.pop(hold_id)
            if self.chance.random() < 0.5:
                holds.close(costs={hold_id: cost})

    def refund(self, payer: Payer) -> None:
        payout = self.chance.choice([None, *Payout.objects.filter(user=payer.user)])
        left = payout and payout.charged_minor - payout.returned_minor
        if payout and left:
            refund = self.stripe.refund(payout.stripe_payment_intent_id, self.chance.randint(1, left))
            if self.chance.random() < 0.2:
                self.stripe.fail_refund(refund)

    def dispute(self, payer: Payer) -> None:
        open_ones = [dispute for dispute, (_, _, is_out) in self.stripe.disputes.items() if is_out]
        if open_ones and self.chance.random() < 0.5:
            self.stripe.reinstate(self.chance.choice(open_ones))
            return
        payout = self.chance.choice([None, *Payout.objects.filter(user=payer.user)])
        if payout and not payout.returned_minor:
            self.stripe.dispute(payout.stripe_payment_intent_id)

    def add_rates(self, month: Month) -> None:
        day = month.begins_on
        while day < month.ends_on:
            for currency in settings.BILLING_CURRENCIES:
                price = Decimal(self.chance.randint(1, 9_999)).scaleb(-3)
                CoinRate.objects.get_or_create(day=day, currency=currency, defaults={"price": price})
            day += timedelta(days=1)

    def prepare(self, begins: datetime) -> Month:
        month = closing.request_sheets(begins_on=begins.date(), now=self.now)
        self.add_rates(month)
        assert closing.prepare_waiting(now=self.now) == 1
        month.refresh_from_db()
        return month

    def close(self, month: Month) -> Month:
        """Have finance ask, and operations approve."""
        approval = closing.request_close(
            month=month, actor=self.finance, reason="month close", key=secrets.token_hex(8)
        )
        approvals.approve(request_id=approval.pk, actor=self.operations, reason="compared")
        month.refresh_from_db()
        return month

    def balance(self, until: datetime) -> int:
        rows = CreditEntry.objects.filter(created_at__lt=until)
        total: int = rows.aggregate(total=Sum("amount", default=0))["total"]
        return total


def months(begin: datetime, count: int) -> list[datetime]:
    """Return the first moments of as many months, and of the next."""
    return [
        datetime(begin.year + (begin.month - 1 + n) // 12, (begin.month - 1 + n) % 12 + 1, 1, tzinfo=UTC)
        for n in range(count + 1)
    ]
