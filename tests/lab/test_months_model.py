"""The reference of the months: the money of an invoice, from a store with a few rows."""

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lab.months.model import Money, read_money

OURS, HATS = "credits", "hats"
_TABLE = "CREATE TABLE resources (position INTEGER PRIMARY KEY, kind TEXT, id TEXT, body TEXT)"


class Store:
    """A file as the double writes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = sqlite3.connect(folder / "account.sqlite3", isolation_level=None)
        self.database.execute(_TABLE)

    def add(self, kind: str, identifier: str, **members: Any) -> None:
        body = json.dumps({"object": kind, "id": identifier, **members})
        row = (kind, identifier, body)
        self.database.execute("INSERT INTO resources (kind, id, body) VALUES (?, ?, ?)", row)

    def pay(self, *amounts: int) -> None:
        """Let succeeded charges pay the invoice, each by a payment of its own."""
        for number, amount in enumerate(amounts):
            self.add(
                "invoice_payment",
                f"inpay_{number}",
                invoice="in_1",
                payment={"payment_intent": f"pi_{number}"},
            )
            self.add(
                "charge", f"ch_{number}", payment_intent=f"pi_{number}", amount=amount, status="succeeded"
            )

    def read(
        self,
        *lines: dict[str, Any],
        status: str = "paid",
        subscription: str = "sub_1",
        metadata: dict[str, str] | None = None,
    ) -> Money | None:
        """Add the invoice with these lines, and return its money."""
        details = {"subscription_details": {"subscription": subscription}} if subscription else None
        self.add(
            "invoice",
            "in_1",
            customer="cus_1",
            parent=details,
            status=status,
            status_transitions={"paid_at": 1},
            lines={"data": list(lines)},
            total=sum(line["amount"] for line in lines),
            metadata=metadata or {},
        )
        return read_money(self.folder, product=OURS).get("in_1")


def line(amount: int, *, product: str = OURS, discount: int = 0, period: int = 10) -> dict[str, Any]:
    return {
        "amount": amount,
        "discount_amounts": [{"amount": discount}] if discount else [],
        "parent": {"subscription_item_details": {"subscription_item": "si_1"}},
        "period": {"start": 0, "end": period},
        "pricing": {"price_details": {"product": product}},
    }


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def amount() -> int:
    return random.randint(1_000, 9_000)


def test_the_money_of_all_payments_counts_and_a_failed_charge_does_not(store: Store, amount: int) -> None:
    store.pay(amount, 300)
    store.add("charge", "ch_9", payment_intent="pi_0", amount=amount, status="failed")

    money = store.read(line(amount + 300))

    assert money is not None
    assert (money.collected, money.ours, money.returned, money.is_due) == (
        amount + 300,
        amount + 300,
        0,
        True,
    )
    assert money.credits(1_000, {}) == (amount + 300) * 10


def test_money_is_divided_among_lines_less_their_discounts(store: Store, amount: int) -> None:
    store.pay(amount)

    money = store.read(line(amount, discount=amount // 2), line(700, product=HATS))

    rest = amount - amount // 2
    assert money is not None
    assert money.ours == amount * rest // (rest + 700)


def test_refunds_and_withdrawn_disputes_take_the_same_share_of_the_credits(store: Store, amount: int) -> None:
    store.pay(amount)
    store.add("refund", "re_1", charge="ch_0", amount=100, status="succeeded")
    store.add("refund", "re_2", charge="ch_0", amount=200, status="failed")
    movements = [{"amount": -300}, {"amount": 50}]
    store.add("dispute", "du_1", charge="ch_0", balance_transactions=movements)

    money = store.read(line(amount))

    whole = amount * 77 // 100
    assert money is not None
    assert (money.returned, money.net) == (350, amount - 350)
    assert money.credits(77, {}) == whole - whole * 350 // amount


@pytest.mark.parametrize("status", ["open", "void"])
def test_an_invoice_that_is_not_paid_is_due_no_credits(store: Store, amount: int, status: str) -> None:
    store.pay(amount)

    money = store.read(line(amount), status=status)

    assert money is not None
    assert (money.ours, money.credits(1_000, {})) == (amount, 0)


@pytest.mark.parametrize(("status", "is_collected"), [("paid", True), ("void", False)])
def test_an_invoice_that_collected_only_a_debt_is_collected_once_it_is_paid(
    store: Store, amount: int, status: str, is_collected: bool
) -> None:
    store.pay(amount)

    money = store.read(line(0), status=status)

    assert money is not None
    assert (money.ours, money.is_collected) == (0, is_collected)


@pytest.mark.parametrize(("subscription", "credits"), [("", 10), ("sub_1", 0)], ids=["alone", "of a month"])
def test_an_invoice_without_a_period_is_due_credits_outside_a_subscription_only(
    store: Store, amount: int, subscription: str, credits: int
) -> None:
    store.pay(amount)

    money = store.read(line(amount, period=0), subscription=subscription)

    assert money is not None
    assert (money.ours, money.credits(1_000, {})) == (amount, amount * credits)


@pytest.mark.parametrize("metadata", [{"operation": "any"}, {}], ids=["ordered", "made by staff"])
def test_a_pack_ordered_by_a_buyer_grants_the_paid_part_of_its_bonus(
    store: Store, amount: int, metadata: dict[str, str]
) -> None:
    store.pay(amount - 300)  # The rest was paid from a balance.

    money = store.read(line(amount), subscription="", metadata=metadata)

    bonus = 500 * (amount - 300) // amount if metadata else 0
    assert money is not None
    assert money.credits(1_000, {amount: 500, amount - 300: 9}) == (amount - 300) * 10 + bonus


def test_another_products_invoice_is_left_out(store: Store, amount: int) -> None:
    store.pay(amount)

    assert store.read(line(amount, product=HATS)) is None
