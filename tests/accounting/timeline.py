"""A service and its Stripe in a past year: time passes, webhooks arrive, periodic tasks run, and months are closed."""

import random
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings

from accounting.models import CoinRate, Month, MonthSheet
from accounting.services import closing
from credits.services import expiry
from gateway.staff import approvals
from payments.models import StripeEvent
from payments.services import purchases, top_ups
from tests.database import tamper
from tests.payments.webhook_events import process_events
from tests.staff import member

# Rows that PostgreSQL's clock dates. Everything before has a time of the past year.
_DATED = ("credits_entry", "credits_hold", "payments_moneyreturn")
_UPDATES = [f"UPDATE {table} SET created_at = %s WHERE created_at > %s" for table in _DATED]  # noqa: S608
_DATE = f"WITH {', '.join(f'u{n} AS ({update})' for n, update in enumerate(_UPDATES))} SELECT"


class Timeline:
    """Time, which is that of the Stripe account, and what the service does as it passes."""

    def __init__(self, stripe: Any) -> None:
        # A `FakeBilling`, or another account with the same controls.
        self.stripe, self.chance = stripe, random.Random(random.random())
        self.sent, self.counts = 0, Counter[str]()
        self.finance, self.operations = member("finance"), member("operations")
        self._expired_on: date | None = None

    @property
    def now(self) -> datetime:
        now: datetime = self.stripe.now()
        return now

    @contextmanager
    def dated(self) -> Iterator[None]:
        """Give what the block writes the account's time."""
        yield
        tamper(_DATE, *[self.now] * 2 * len(_DATED))

    def move_to(self, moment: datetime) -> None:
        """Let time pass in steps of hours; events are applied and tasks run on the way."""
        while (left := moment - self.now) > timedelta(seconds=1):
            step = min(left, timedelta(hours=self.chance.randint(6, 72)))
            self.pass_time(int(step.total_seconds()) or 1)
            self.deliver()
            self.run_tasks()

    def jump_to(self, moment: datetime) -> None:
        """Let time pass at once; then events are applied and tasks run."""
        self.pass_time(int((moment - self.now).total_seconds()))
        self.deliver()
        self.run_tasks()

    def pass_time(self, seconds: int) -> None:
        self.stripe.pass_time(seconds)

    def deliver(self) -> None:
        """Process the events that are new."""
        new = self.new_events()
        if new:
            with self.dated():
                process_events(new, now=self.now)
            assert not StripeEvent.objects.exclude(status="processed").exists()

    def new_events(self) -> list[bytes]:
        events: list[bytes] = self.stripe.events
        new, self.sent = events[self.sent :], len(events)
        return new

    def run_tasks(self) -> None:
        """Run what beat runs; given credits expire once a day."""
        now = self.now
        with self.dated():
            closed = purchases.close_unpaid(now=now)
            paid = top_ups.run(now=now)
        self.counts["automatic purchases"] += paid
        if closed or paid:
            self.deliver()
        if self._expired_on != now.date():
            self._expired_on = now.date()
            self.expire()

    def expire(self) -> datetime:
        """Announce and post what expires now, and return that time."""
        now = self.now
        with self.dated():
            self.counts["announcements"] += expiry.announce(now=now)
            self.counts["expiries"] += expiry.expire(now=now)
        return now

    def end_month(self) -> None:
        """Do what is done at Stripe at the end of each month."""

    # Stripe's books

    def movements(self, since: datetime, until: datetime) -> list[tuple[str, str, int, int, int]]:
        """Return Stripe's balance transactions: currency, category, amount, fee and net."""
        return [
            (row.currency, row.category, row.amount_minor, row.fee_minor, row.net_minor)
            for row in self.stripe.movements
            if since <= row.created_at < until
        ]

    def charges(self) -> list[tuple[str, int]]:
        """Return every charge at Stripe that succeeded: its payment intent and amount."""
        rows = [row for row in self.stripe.movements if row.category == "charge"]
        return [(row.payment_intent_id, row.amount_minor) for row in rows]

    # Closing

    def prepare(self, begins: datetime) -> Month:
        month = closing.request_sheets(begins_on=begins.date(), now=self.now)
        self._add_rates(month)
        assert closing.prepare_waiting(now=self.now) == 1
        month.refresh_from_db()
        return month

    def _add_rates(self, month: Month) -> None:
        days = (month.begins_on + timedelta(days=n) for n in range((month.ends_on - month.begins_on).days))
        rows = [
            CoinRate(
                day=day,
                coin=settings.CHAIN_COIN,
                currency=currency,
                price=Decimal(self.chance.randint(1, 9_999)).scaleb(-3),
            )
            for day in days
            for currency in settings.BILLING_CURRENCIES
        ]
        CoinRate.objects.bulk_create(rows, ignore_conflicts=True)

    def close(self, month: Month) -> Month:
        """Have finance ask, and operations approve."""
        approval = closing.request_close(
            month=month, actor=self.finance, reason="month close", key=secrets.token_hex(8)
        )
        approvals.approve(request_id=approval.pk, actor=self.operations, reason="compared")
        month.refresh_from_db()
        return month


def months(begin: datetime, count: int) -> list[datetime]:
    """Return the first moments of as many months, and of the next."""
    return [
        datetime(begin.year + (begin.month - 1 + n) // 12, (begin.month - 1 + n) % 12 + 1, 1, tzinfo=UTC)
        for n in range(count + 1)
    ]


def sheet(month: Month, name: str) -> list[dict[str, Any]]:
    """Return the rows of a sheet by title."""
    parts = MonthSheet.objects.filter(month=month, name=name).order_by("part")
    return [
        dict(zip((title for title, _ in part.columns), row, strict=True))
        for part in parts
        for row in part.rows
    ]


def total(rows: list[dict[str, Any]], title: str) -> Counter[str]:
    """Sum a column by currency, and leave out what is 0."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row["currency"]] += row[title]
    return without_zeros(sums)


def without_zeros(sums: Counter[Any]) -> Counter[Any]:
    return Counter({key: value for key, value in sums.items() if value})
