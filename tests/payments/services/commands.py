"""The four commands that the service sends to Stripe, and what must hold once one is executed."""

from collections.abc import Callable
from dataclasses import dataclass

from payments.models import BillingOperation, Customer, Subscription
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import VISA, DoubleAccount
from users.models import User

AMOUNT = 1_234


@dataclass(frozen=True)
class Command:
    """A command: its preparation, the request that leads to it, and the method and path by which it reaches Stripe."""

    kind: str
    method: str
    http: str
    path: str
    prepare: Callable[[Payer], object]
    send: Callable[[Payer], object]


def _subscribe(payer: Payer) -> object:
    payer.with_card(VISA)
    return payer.upsert(AMOUNT)


CREATE_CUSTOMER = Command(
    "create-customer",
    "create_customer",
    "POST",
    "/v1/customers",
    lambda payer: None,
    lambda payer: payer.customer,
)
CREATE = Command(
    "create-subscription",
    "create_subscription",
    "POST",
    "/v1/subscriptions",
    lambda payer: payer.with_card(VISA),
    lambda payer: payer.upsert(AMOUNT),
)
UPDATE = Command(
    "update-subscription",
    "update_subscription",
    "POST",
    "/v1/subscriptions/",
    _subscribe,
    lambda payer: payer.upsert(2 * AMOUNT, cancels=True),
)
CANCEL = Command(
    "cancel-subscription",
    "cancel_subscription",
    "DELETE",
    "/v1/subscriptions/",
    _subscribe,
    lambda payer: payer.cancel(immediately=True),
)
COMMANDS = (CREATE_CUSTOMER, CREATE, UPDATE, CANCEL)


def prepared(command: Command, double: DoubleAccount, user: User) -> Payer:
    """Return a user for whom the command is the next thing to do."""
    payer = Payer(double, user)
    command.prepare(payer)
    double.controls.clear_requests()
    return payer


def assert_executed_once(command: Command, double: DoubleAccount, payer: Payer) -> None:
    """Assert that Stripe has executed the command once and that our rows agree."""
    operation = BillingOperation.objects.get(kind=command.kind)
    assert operation.status == "done"
    assert not BillingOperation.objects.filter(status="pending").exists()
    (customer,) = double.v1.customers.list().data
    assert Customer.objects.get().stripe_customer_id == customer.id
    subscriptions = double.v1.subscriptions.list({"status": "all"}).data
    if command is CREATE_CUSTOMER:
        assert subscriptions == []
        return
    (subscription,) = subscriptions
    (item,) = subscription["items"].data
    stored = Subscription.objects.get()
    assert (stored.stripe_subscription_id, stored.stripe_item_id) == (subscription.id, item.id)
    assert (stored.status, stored.amount_minor) == (subscription.status, item.price.unit_amount)
    assert stored.cancels_at_period_end == subscription.cancel_at_period_end
    assert subscription.status == ("canceled" if command is CANCEL else "active")
    assert item.price.unit_amount == (2 * AMOUNT if command is UPDATE else AMOUNT)
    assert len(double.v1.invoices.list().data) == 1
    assert len(double.v1.charges.list().data) == 1


def keys_used(command: Command, double: DoubleAccount) -> set[str | None]:
    """Return the idempotency keys of the command's requests."""
    exact = not command.path.endswith("/")
    requests = double.controls.requests(command.http, command.path)
    return {one.idempotency_key for one in requests if not exact or one.path == command.path}
