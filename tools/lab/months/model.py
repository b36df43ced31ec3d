"""
The reference: what the Stripe double's store has as collected for a product, and what of it was returned.

It reads the store's file alone and uses nothing of the gateway. An invoice's money is that of its payments' charges;
returned is what refunds that did not fail, and disputes that are not reinstated, took of it.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """
    The money of one invoice, in minor units.

    `ours` is the part of `collected` that its lines of the product got, in proportion to their amounts. `is_due`:
    the invoice is paid, and is one of no subscription, or has a line for a period of the product. `price` is the total
    of one that a buyer ordered, and 0 of others.
    """

    invoice: str
    customer: str
    subscription: str
    status: str
    paid_at: datetime | None
    collected: int
    ours: int
    returned: int
    is_due: bool
    price: int

    def credits(self, rate: int, bonuses: Mapping[int, int]) -> int:
        """
        Return what the owner must have of it, at `rate` credits for 1.00: the whole less the returned share.

        `bonuses` has the bonus of each pack by its price; a part of the price gives that part of the bonus.
        """
        if not self.is_due or not self.ours:
            return 0
        whole = self.ours * rate // 100
        if bonus := bonuses.get(self.price):
            whole += bonus * min(self.collected, self.price) // self.price
        return whole - whole * min(self.returned, self.collected) // self.collected

    @property
    def is_collected(self) -> bool:
        """Whether it brought money for the product, or is paid with money, if only a debt's."""
        return self.ours > 0 or (self.status == "paid" and self.collected > 0)

    @property
    def net(self) -> int:
        """The rest of the collected money."""
        return self.collected - self.returned


def read_money(store: Path, *, product: str) -> dict[str, Money]:
    """Return the money of every invoice that has a line of the product, by invoice."""
    charges = defaultdict(list)
    for charge in _rows(store, "charge"):
        if charge["status"] == "succeeded":
            charges[charge["payment_intent"]].append(charge)
    returned = _returned(store)
    intents = defaultdict(list)
    for payment in _rows(store, "invoice_payment"):
        intents[payment["invoice"]].append(payment["payment"]["payment_intent"])
    found = {}
    for invoice in _rows(store, "invoice"):
        paid = [charge for intent in intents[invoice["id"]] for charge in charges[intent]]
        lines = [(_product_of(line) == product, line) for line in invoice["lines"]["data"]]
        if any(is_ours for is_ours, _ in lines):
            found[invoice["id"]] = _money(
                invoice,
                lines,
                collected=sum(charge["amount"] for charge in paid),
                returned=sum(returned[charge["id"]] for charge in paid),
            )
    return found


def _money(invoice: _Row, lines: list[tuple[bool, _Row]], *, collected: int, returned: int) -> Money:
    ours = sum(_charged(line) for is_ours, line in lines if is_ours)
    whole = sum(_charged(line) for _, line in lines)
    has_period = any(
        is_ours
        and (line["parent"] or {}).get("subscription_item_details")
        and line["period"]["start"] < line["period"]["end"]
        for is_ours, line in lines
    )
    details = (invoice["parent"] or {}).get("subscription_details") or {}
    paid_at = invoice["status_transitions"]["paid_at"]
    part = 0 if ours <= 0 else collected if ours >= whole else collected * ours // whole
    return Money(
        invoice=invoice["id"],
        customer=invoice["customer"],
        subscription=details.get("subscription", ""),
        status=invoice["status"],
        paid_at=datetime.fromtimestamp(paid_at, UTC) if paid_at else None,
        collected=collected,
        ours=part,
        returned=returned,
        is_due=invoice["status"] == "paid" and (has_period or not details),
        price=invoice["total"] if "operation" in invoice["metadata"] else 0,
    )


def _returned(store: Path) -> dict[str, int]:
    """Return what was returned of each charge."""
    sums: defaultdict[str, int] = defaultdict(int)
    for refund in _rows(store, "refund"):
        if refund["status"] in ("succeeded", "pending"):
            sums[refund["charge"]] += refund["amount"]
    for dispute in _rows(store, "dispute"):
        sums[dispute["charge"]] -= sum(movement["amount"] for movement in dispute["balance_transactions"])
    return sums


def _charged(line: _Row) -> int:
    return int(line["amount"]) - sum(int(part["amount"]) for part in line["discount_amounts"])


def _product_of(line: _Row) -> str:
    details = (line["pricing"] or {}).get("price_details") or {}
    return str(details.get("product") or "")


def _rows(store: Path, kind: str) -> Iterator[_Row]:
    connection = sqlite3.connect(f"file:{store / 'account.sqlite3'}?mode=ro", uri=True)
    try:
        query = "SELECT body FROM resources WHERE kind = ? ORDER BY position"
        for (body,) in connection.execute(query, (kind,)):
            yield json.loads(body)
    finally:
        connection.close()
