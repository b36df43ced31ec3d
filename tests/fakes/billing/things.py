"""What the account in memory holds."""

import calendar
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from payments.errors import BillingRefused

ENDED = ("canceled", "incomplete_expired")
_Thing = TypeVar("_Thing")


@dataclass
class Card:
    """A captured card; `declines` holds the reason, `asks` wants the holder to confirm."""

    id: str
    declines: str = ""
    asks: bool = False


@dataclass
class Customer:
    """A customer with the cards, oldest first."""

    id: str
    user_id: str
    profile_address: str
    created: datetime
    cards: list[Card] = field(default_factory=list)
    default: Card | None = None


@dataclass
class Subscription:
    """A subscription with its one item and its invoices; `period` counts from 0."""

    id: str
    item_id: str
    customer: Customer
    amount: int
    currency: str
    anchor: datetime
    cancels: bool
    status: str = "incomplete"
    period: int = 0
    ended_at: datetime | None = None
    invoices: list["Invoice"] = field(default_factory=list)

    def boundary(self, number: int) -> datetime:
        """Return when the period of this number begins."""
        years, month = divmod(self.anchor.month - 1 + number, 12)
        year = self.anchor.year + years
        last = calendar.monthrange(year, month + 1)[1]
        return self.anchor.replace(year=year, month=month + 1, day=min(self.anchor.day, last))


@dataclass
class Invoice:
    """An invoice of a period; `collected` is money that came in."""

    id: str
    subscription: Subscription
    reason: str
    amount: int
    created: datetime
    period: tuple[datetime, datetime]
    intent: str
    status: str = "open"
    collected: int = 0
    paid_at: datetime | None = None
    failure: str = ""
    asks: bool = False


def found_in(things: dict[str, _Thing], identifier: str) -> _Thing:
    """Return a thing by its id, or refuse as Stripe does."""
    if identifier not in things:
        raise BillingRefused("Stripe refused the request.", reason="resource_missing")
    return things[identifier]


def new(prefix: str) -> str:
    """Return an id that nobody has."""
    return f"{prefix}_{secrets.token_hex(10)}"
