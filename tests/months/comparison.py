"""The comparison of every payout and every account with the reference, which reads the double's store alone."""

from collections import Counter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Count, Sum

from credits.models import CreditEntry, EntrySource
from lab.months.model import Money, read_money
from payments.models import AutoTopUp, Clawback, Customer, Payout, Purchase, StripeEvent
from payments.services import reconciliation
from payments.services.reconciliation.findings import Rule
from tests.payments.stripe_accounts import DoubleAccount

# The findings that a clerk's actions explain.
_EXPLAINED = {Rule.INVOICE_WITHOUT_PAYOUT, Rule.FRAUD_WARNING, Rule.SUBSCRIPTIONS_TWO_LIVE}
# The sources of the credits that collected money gives.
_OF_MONEY = (EntrySource.SUBSCRIBED_PAYOUT, EntrySource.CREDIT_PURCHASE, EntrySource.PAYOUT_CLAWBACK)


class Comparison:
    """What must be true after each month, and the findings so far."""

    def __init__(self, double: DoubleAccount, store: Path, *, rate: int) -> None:
        self.double, self.store, self.rate = double, store, rate
        # The bonus of every pack that was ever offered, by its price: no two have the same.
        self.bonuses: dict[int, int] = {}
        self.done = 0
        self._findings: Counter[str] = Counter()
        self._named: set[str] = set()
        self._differing: set[str] = set()

    def compare(self, *, days: int) -> None:
        """
        Compare every payout and every account with the reference.

        Raises:
            AssertionError: a difference that no finding names, or a finding that no act explains.
        """
        run = reconciliation.reconcile(now=self.double.now(), minutes=0, days=days)
        assert run is not None
        for finding in run.findings:
            self._findings[str(finding["rule"])] += 1
            self._named.update(str(name) for name in finding["ids"].values())
        unexplained = [finding for finding in run.findings if Rule(finding["rule"]) not in _EXPLAINED]
        assert not unexplained, unexplained[:5]
        books = self._books()
        self._compare_invoices(books)
        self._compare_accounts(books)
        self.done += 1

    def _books(self) -> dict[str, Money]:
        return read_money(self.store, product=settings.STRIPE_PRODUCT_ID)

    def _compare_invoices(self, books: dict[str, Money]) -> None:
        payouts = {row.stripe_invoice_id: row for row in Payout.objects.all()}
        sums = Clawback.objects.values_list("payout__stripe_invoice_id").annotate(total=Sum("credits"))
        taken = dict(sums.order_by())
        self._differing = set()
        for invoice in books.keys() | payouts.keys():
            money, payout = books.get(invoice), payouts.get(invoice)
            have, wanted = _of(payout, taken.get(invoice, 0)), self._due(money)
            if have != wanted or (money is not None and money.is_collected and not payout):
                self._differing.add(invoice)
        unnamed = [
            (invoice, _of(payouts.get(invoice), taken.get(invoice, 0)), books.get(invoice))
            for invoice in self._differing - self._named
        ]
        assert not unnamed, f"{len(unnamed)} differences without a finding: {unnamed[:3]}"

    def _due(self, money: Money | None) -> tuple[int, int, int]:
        """Return what a payout must have: the money of our product, the net of the whole invoice, the credits."""
        if money is None or not money.is_due or money.ours <= 0:
            return 0, 0, 0
        return money.ours, money.net, self._credits(money)

    def _compare_accounts(self, books: dict[str, Money]) -> None:
        """Compare what money gave each person with the credits of their customers' invoices."""
        owners = dict(Customer.objects.values_list("stripe_customer_id", "user_id"))
        due: Counter[int] = Counter()
        for money in books.values():
            if money.customer in owners:
                due[owners[money.customer]] += self._credits(money)
        rows = CreditEntry.objects.filter(source__in=_OF_MONEY).values_list("account__user")
        have = dict(rows.annotate(total=Sum("amount")).order_by())
        wrong = {
            user: (have.get(user, 0), due[user])
            for user in have.keys() | due.keys()
            if have.get(user, 0) != due[user]
        }
        assert not wrong, wrong

    def _credits(self, money: Money) -> int:
        return money.credits(self.rate, self.bonuses)

    def figures(self) -> dict[str, Any]:
        """
        Return sums of the whole course, in minor units and credits.

        `collected` less `returned` is `paid out, net` and what the named differences have.
        """
        books, payouts = self._books(), Payout.objects.all()
        rows = CreditEntry.objects.filter(source__in=_OF_MONEY)
        unpaid = books.keys() - set(payouts.values_list("stripe_invoice_id", flat=True))
        return {
            "comparisons": self.done,
            "invoices": len(books),
            "collected": sum(money.collected for money in books.values()),
            "returned": sum(money.returned for money in books.values()),
            "paid out, net": sum(payout.charged_minor - payout.returned_minor for payout in payouts),
            "not paid out, by a finding": sum(books[invoice].net for invoice in unpaid),
            "invoices that differ, by a finding": len(self._differing),
            "payouts": len(payouts),
            "of purchases": payouts.filter(purchase__isnull=False).count(),
            "clawbacks": Clawback.objects.count(),
            "events": StripeEvent.objects.count(),
            "credits": rows.aggregate(total=Sum("amount"))["total"],
            "findings": dict(self._findings),
            "purchases": _purchases(),
        }


def _of(payout: Payout | None, taken: int) -> tuple[int, int, int]:
    if payout is None:
        return 0, 0, 0
    return payout.amount_minor, payout.charged_minor - payout.returned_minor, payout.credits - taken


def _purchases() -> dict[str, int]:
    """Return how many purchases there were, by who ordered them and how they ended."""
    by_hand = Purchase.objects.filter(top_up=None)
    ordered = {
        "by hand": by_hand.exclude(idempotency_key=""),
        "automatic": Purchase.objects.filter(top_up__isnull=False),
        "at the dashboard": by_hand.filter(idempotency_key=""),
    }
    figures = {
        f"{who} {status}": count
        for who, rows in ordered.items()
        for status, count in rows.values_list("status").annotate(Count("pk")).order_by("status")
    }
    paused = AutoTopUp.objects.exclude(paused_reason="").values_list("paused_reason")
    reasons = paused.annotate(Count("pk")).order_by("paused_reason")
    return figures | {f"paused: {reason}": count for reason, count in reasons}
