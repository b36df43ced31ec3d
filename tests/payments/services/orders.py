"""The four orders that the service gives to Stripe, each with what must be true once it is carried out."""

from collections.abc import Callable
from dataclasses import dataclass

from payments.models import BillingOperation, Customer, Subscription
from tests.payments.people import Payer
from tests.payments.worlds import VISA, DoubleWorld
from users.models import User

AMOUNT = 1_234


@dataclass(frozen=True)
class Order:
    """One order: what comes before it, how it is asked for, by which method and path it reaches Stripe."""

    kind: str
    method: str
    http: str
    path: str
    prepare: Callable[[Payer], object]
    ask: Callable[[Payer], object]


def _subscribe(payer: Payer) -> object:
    payer.with_card(VISA)
    return payer.upsert(AMOUNT)


CREATE_CUSTOMER = Order(
    "create-customer",
    "create_customer",
    "POST",
    "/v1/customers",
    lambda payer: None,
    lambda payer: payer.customer,
)
CREATE = Order(
    "create-subscription",
    "create_subscription",
    "POST",
    "/v1/subscriptions",
    lambda payer: payer.with_card(VISA),
    lambda payer: payer.upsert(AMOUNT),
)
UPDATE = Order(
    "update-subscription",
    "update_subscription",
    "POST",
    "/v1/subscriptions/",
    _subscribe,
    lambda payer: payer.upsert(2 * AMOUNT, cancels=True),
)
CANCEL = Order(
    "cancel-subscription",
    "cancel_subscription",
    "DELETE",
    "/v1/subscriptions/",
    _subscribe,
    lambda payer: payer.cancel(immediately=True),
)
ORDERS = (CREATE_CUSTOMER, CREATE, UPDATE, CANCEL)


def prepared(order: Order, double: DoubleWorld, user: User) -> Payer:
    """Return a user for whom the order is the next thing to do."""
    payer = Payer(double, user)
    order.prepare(payer)
    double.controls.clear_requests()
    return payer


def assert_carried_out_once(order: Order, double: DoubleWorld, payer: Payer) -> None:
    """Stripe has what was asked for, once, and our rows say the same."""
    operation = BillingOperation.objects.get(kind=order.kind)
    assert operation.status == "done"
    assert not BillingOperation.objects.filter(status="pending").exists()
    (customer,) = double.v1.customers.list().data
    assert Customer.objects.get().stripe_customer_id == customer.id
    subscriptions = double.v1.subscriptions.list({"status": "all"}).data
    if order is CREATE_CUSTOMER:
        assert subscriptions == []
        return
    (told,) = subscriptions
    (item,) = told["items"].data
    stored = Subscription.objects.get()
    assert (stored.stripe_subscription_id, stored.stripe_item_id) == (told.id, item.id)
    assert (stored.status, stored.amount_minor) == (told.status, item.price.unit_amount)
    assert stored.cancels_at_period_end == told.cancel_at_period_end
    assert told.status == ("canceled" if order is CANCEL else "active")
    assert item.price.unit_amount == (2 * AMOUNT if order is UPDATE else AMOUNT)
    assert len(double.v1.invoices.list().data) == 1
    assert len(double.v1.charges.list().data) == 1


def keys_used(order: Order, double: DoubleWorld) -> set[str | None]:
    """Return the idempotency keys of the order's requests."""
    exact = not order.path.endswith("/")
    found = double.controls.requests(order.http, order.path)
    return {one.idempotency_key for one in found if not exact or one.path == order.path}
