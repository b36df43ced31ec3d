"""A subscriber, and the payment provider's own books."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import stripe
from urllib3.exceptions import HTTPError

from devstack.environment import CREDITS_PER_MAJOR_UNIT
from devstack.services.stripe_double import StripeDouble
from devstack.stripe_account import StripeAccount
from stripe_double.client import LoggedRequest
from tests.journeys.api import ApiResponse, until_served
from tests.journeys.billing_records import BillingRecords
from tests.journeys.people import Person
from tests.journeys.stack import Stack
from tests.journeys.waiting import until

CUSTOMER = "/api/payments/createCustomer"
UPSERT = "/api/payments/upsertSubscription"
CUSTOMERS, SUBSCRIPTIONS = "/v1/customers", "/v1/subscriptions"
# The code of the response while the provider takes too long.
AWAY = "billing-unavailable"
_VISA = "pm_card_visa"


@dataclass
class Payer:
    """A person, the same one at the provider, and the service between them."""

    person: Person
    stack: Stack
    amount: int
    opening_balance: int = field(init=False)
    remembered: list[LoggedRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.opening_balance = self.records.account(self.profile).balance

    @property
    def profile(self) -> str:
        """The address of the profile."""
        return self.person.profile.profile_address

    @property
    def records(self) -> BillingRecords:
        """The rows."""
        return BillingRecords(self.stack.services.database_url)

    @property
    def double(self) -> StripeDouble:
        """The provider."""
        return self.stack.services.stripe

    @property
    def v1(self) -> Any:
        """The provider's API, for its bookkeeper."""
        return stripe.StripeClient(self.double.secret_key, base_addresses={"api": self.double.url}).v1

    def with_card(self) -> "Payer":
        """Become a customer and capture a card."""
        provider = StripeAccount(self.double.url, self.double.secret_key)
        provider.capture_card(self.person.wallet.setup_intent(), _VISA)
        return self

    def create_customer(self) -> ApiResponse:
        """Ask for a customer, until the provider has responded in time."""
        return until_served(lambda: self.person.api.ask(CUSTOMER, {}), only_code=AWAY)

    def upsert(self) -> ApiResponse:
        """Ask for the subscription, until the provider has responded in time."""
        return until_served(
            lambda: self.person.api.ask(UPSERT, {"subscriptionCost": self.amount}), only_code=AWAY
        )

    def subscribed(self) -> None:
        """Ask for the subscription, and wait until the service has processed all events that follow."""
        assert self.upsert().status == 200
        self.until_all_processed()
        self.assert_paid_out_once()

    def until_all_processed(self) -> None:
        """Wait until the service has received and processed every event so far."""
        self.double.controls.settle()
        until("every event is processed", lambda: not self.records.unprocessed())

    def cancel(self) -> ApiResponse:
        """Ask for its end, now."""
        return self.person.api.ask("/api/payments/cancelSubscription?cancelImmediately=true", method="DELETE")

    def customers(self) -> list[Any]:
        """Return the customers that the provider has of this profile."""
        rows = self.v1.customers.list({"limit": 100}).auto_paging_iter()
        return [row for row in rows if row.metadata and row.metadata.to_dict().get("address") == self.profile]

    def subscriptions(self) -> list[Any]:
        """Return the subscriptions that the provider has of this profile, ended ones too."""
        (customer,) = self.customers()
        return list(self.v1.subscriptions.list({"customer": customer.id, "status": "all"}).data)

    def event_ids(self, type: str) -> list[str]:
        """Return the ids of the events of this type about the profile's subscription or customer."""
        (customer,) = self.customers()
        rows = self.v1.events.list({"types": [type], "limit": 100}).auto_paging_iter()
        return [row.id for row in rows if row.data.object.to_dict().get("customer") == customer.id]

    def until_nothing_is_pending(self) -> None:
        """Wait until what was begun is finished."""
        until("nothing is pending", lambda: not self.records.pending(self.profile))

    def assert_one_customer(self) -> None:
        """There is one customer here and there, and one row names it."""
        (customer,) = self.customers()
        assert self.records.customers(self.profile) == [customer.id]
        response = self.create_customer()
        assert (response.status, response.body["paymentsCustomerId"]) == (200, customer.id)
        assert [request.id for request in self.customers()] == [customer.id]
        assert_one_key(self.orders(CUSTOMERS))

    def assert_one_subscription(self, *, amount: int | None = None) -> None:
        """There is one customer, one subscription, one item and one charge; the rows agree."""
        self.assert_one_customer()
        (subscription,) = self.subscriptions()
        (item,) = subscription["items"].data
        wanted = amount or self.amount
        assert (subscription.status, item.price.unit_amount) == ("active", wanted)
        (stored,) = self.records.subscriptions(self.profile)
        assert (stored.id, stored.status, stored.amount_minor) == (subscription.id, "active", wanted)
        assert_one_key(self.orders(SUBSCRIPTIONS))
        charges = self.v1.charges.list({"customer": subscription.customer}).data
        assert [(charge.status, charge.amount) for charge in charges] == [("succeeded", self.amount)]

    def assert_paid_out_once(self) -> None:
        """The month is paid out, once, and every credit is explained."""
        until("the month is paid out", lambda: self.records.payouts(self.profile))
        (subscription,) = self.subscriptions()
        (payout,) = self.records.payouts(self.profile)
        worth = self.amount * CREDITS_PER_MAJOR_UNIT // 100
        assert (payout.invoice, payout.amount_minor) == (subscription.latest_invoice, self.amount)
        assert payout.credits == worth
        assert self.records.paid_out(self.profile) == [worth]
        assert self.records.account(self.profile).balance == self.opening_balance + worth

    def assert_settled(self, *, amount: int | None = None) -> None:
        """Everything is there once, and a wallet that repeats its request gets it."""
        response = self.upsert()
        (subscription,) = self.subscriptions()
        assert (response.status, response.body.get("subscriptionId")) == (200, subscription.id)
        self.assert_one_subscription(amount=amount)
        self.assert_paid_out_once()
        assert not self.records.pending(self.profile)

    def remember_requests(self) -> None:
        """Keep the provider's log, which its restart empties."""
        self.remembered = self.double.controls.requests("POST")

    def posts(self, path: str) -> list[LoggedRequest]:
        """Return the logged orders of exactly this path."""
        every = [*self.remembered, *self.double.controls.requests("POST", path)]
        return [request for request in every if request.path == path]

    def orders(self, path: str) -> list[LoggedRequest]:
        """Return those of them that are about this profile or its customer."""
        about = {self.profile, *(customer.id for customer in self.customers())}
        return [request for request in self.posts(path) if not about.isdisjoint(_named_in(request))]


def _named_in(request: LoggedRequest) -> list[Any]:
    return [request.params.get("customer"), request.params.get("metadata", {}).get("address")]


def assert_one_key(orders: list[LoggedRequest]) -> None:
    """However often it was sent, it was one order: there is a key, and it is the id of an operation."""
    assert [len(str(key)) for key in {order.idempotency_key for order in orders}] == [36]


@contextmanager
def unanswered(ask: Any) -> Iterator["Future[ApiResponse]"]:
    """Ask within the block, in which the other end is killed: no response may come."""
    with ThreadPoolExecutor(1) as caller:
        result = caller.submit(ask)
        yield result
        with pytest.raises(HTTPError):
            result.result()
