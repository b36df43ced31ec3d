"""A command is repeated with its key after a release or a setting has changed what it sends: once is enough."""

import secrets
from typing import Any

import pytest
import stripe

from payments.models import BillingOperation, Customer, Purchase, Subscription
from payments.services import customers, operations, purchases
from payments.services.purchases import Order
from payments.stripe import get_billing_client, set_billing_client
from tests.payments.buying import buy
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import VISA, DoubleAccount
from users.models import User

pytestmark = pytest.mark.django_db


def _turn_tax_on(settings: Any) -> None:
    settings.STRIPE_AUTOMATIC_TAX = True
    set_billing_client(None)


def test_a_subscription_made_before_the_change_is_found_and_no_second_one_is_made(
    double: DoubleAccount, payer: Payer, amount: int, settings: Any
) -> None:
    customer = payer.customer.stripe_customer_id
    assert get_billing_client().has_payment_method(customer_id=customer)  # Makes the card the default.
    parameters: dict[str, Any] = {
        "customer_id": customer,
        "amount_minor": amount,
        "currency": "usd",
        "cancels_at_period_end": False,
    }
    kind = BillingOperation.Kind.CREATE_SUBSCRIPTION
    begun = operations.begin(user=payer.user, kind=kind, parameters=parameters, now=double.now())
    made = get_billing_client().create_subscription(**parameters, key=str(begun.pk))  # The process dies here.
    _turn_tax_on(settings)

    assert operations.resume_abandoned(now=double.now() + operations.ABANDONED_AFTER * 2) == 1

    begun.refresh_from_db()
    assert (begun.status, begun.outcome) == ("done", made.subscription_id)
    assert Subscription.objects.get().stripe_subscription_id == made.subscription_id
    assert len(double.v1.subscriptions.list({"customer": customer}).data) == 1


def test_a_purchase_begun_before_the_change_is_paid_by_its_first_invoice(
    double: DoubleAccount, payer: Payer, amount: int, settings: Any
) -> None:
    key = secrets.token_hex(8)
    order = Order(amount, "usd")
    begun = purchases.store(customer=payer.customer, order=order, key=key, now=double.now())
    invoice = get_billing_client().create_purchase(
        customer_id=payer.customer.stripe_customer_id, amount_minor=amount, currency="usd", key=str(begun.pk)
    )
    _turn_tax_on(settings)

    bought = buy(payer, amount, key)

    assert (bought.status, bought.stripe_invoice_id) == (Purchase.Status.PAID, invoice)
    assert len(payer.purchases) == 1
    assert [row.id for row in double.v1.invoices.list({}).data] == [invoice]


def test_a_key_that_made_nothing_with_other_parameters_is_replaced(double: DoubleAccount, user: User) -> None:
    begun = operations.begin(
        user=user,
        kind=BillingOperation.Kind.CREATE_CUSTOMER,
        parameters={"address": user.profile_address},
        now=double.now(),
    )
    double.controls.fail(500, saved=True, method="POST", path="/v1/customers")
    options = {"idempotency_key": str(begun.pk), "max_network_retries": 0}
    with pytest.raises(stripe.APIError):
        double.v1.customers.create({"description": "as the former release described it"}, options)

    customer = customers.ensure_customer(user=user, now=double.now())

    assert Customer.objects.get() == customer
    assert [row.id for row in double.v1.customers.list({}).data] == [customer.stripe_customer_id]
    double.capture(customer.stripe_customer_id, VISA)
