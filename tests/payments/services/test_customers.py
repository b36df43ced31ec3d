"""One user, one customer, for any number of concurrent requests."""

import json

import pytest
from django.db.models import Count
from django.utils import timezone

from payments.errors import BillingRefused, BillingUnavailable
from payments.models import BillingOperation, Customer
from payments.services import customers
from tests.fakes.billing import FakeBilling
from tests.payments.rows import all_rows
from tests.payments.stripe_accounts import DoubleAccount
from users.models import User

CUSTOMERS = "/v1/customers"


@pytest.mark.django_db
def test_the_first_call_creates_the_customer_and_later_ones_return_it(
    double: DoubleAccount, user: User
) -> None:
    first = customers.ensure_customer(user=user, now=timezone.now())
    with double.frozen_log() as orders:
        again = customers.ensure_customer(user=user, now=timezone.now())
    assert again == first
    assert orders == []
    customer = double.v1.customers.retrieve(first.stripe_customer_id)
    assert customer.description == user.profile_address
    assert customer.metadata["address"] == user.profile_address
    operation = BillingOperation.objects.get()
    assert (operation.status, operation.outcome) == ("done", first.stripe_customer_id)
    assert customer.metadata["operation"] == str(operation.pk)


@pytest.mark.django_db
def test_an_unreachable_stripe_is_reported_and_a_repeat_finishes_the_operation(
    fake: FakeBilling, user: User
) -> None:
    with fake.away(), pytest.raises(BillingUnavailable) as refusal:
        customers.ensure_customer(user=user, now=timezone.now())
    assert refusal.value.retry_after
    assert not Customer.objects.exists()
    begun = BillingOperation.objects.get(status="pending")
    customers.ensure_customer(user=user, now=timezone.now())
    assert BillingOperation.objects.get(status="done") == begun


@pytest.mark.django_db
def test_a_refused_creation_does_not_prevent_the_next_try(
    fake: FakeBilling, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> str:
        raise BillingRefused("Stripe refused the request.", reason="testing")

    with monkeypatch.context() as patch:
        patch.setattr(fake, "create_customer", refuse)
        with pytest.raises(BillingRefused):
            customers.ensure_customer(user=user, now=timezone.now())
    assert BillingOperation.objects.get().status == "refused"
    assert customers.ensure_customer(user=user, now=timezone.now()).pk


@pytest.mark.django_db
def test_a_setup_secret_is_new_every_time_and_creates_the_customer(double: DoubleAccount, user: User) -> None:
    first, second = (customers.setup_secret(user=user, now=timezone.now()) for _ in range(2))
    assert first != second
    made = Customer.objects.get()
    for secret in (first, second):
        intent = double.v1.setup_intents.retrieve(secret.split("_secret_")[0])
        assert (intent.customer, intent.usage, intent.client_secret) == (
            made.stripe_customer_id,
            "off_session",
            secret,
        )


@pytest.mark.django_db
def test_a_setup_secret_is_not_stored(double: DoubleAccount, user: User) -> None:
    secret = customers.setup_secret(user=user, now=timezone.now())
    assert secret not in json.dumps(all_rows(), default=str)
    assert Customer.objects.aggregate(count=Count("pk")) == {"count": 1}
