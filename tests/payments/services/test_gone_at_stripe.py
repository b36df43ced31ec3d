"""Objects deleted, archived or detached at Stripe: no request breaks, and the customer can continue."""

import secrets
from collections.abc import Callable
from functools import partial

import pytest

from gateway.common.errors import DomainError
from payments.errors import BillingRefused
from payments.models import BillingOperation, Customer, StripeEvent, Subscription
from payments.services import customers, operations, reconciliation, standing, synchronisation
from payments.stripe import get_billing_client
from payments.stripe.sdk import StripeBillingClient
from tests.fakes.billing import FakeBilling
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, VISA, DoubleAccount
from tests.payments.webhook_events import process_events
from users.models import User

pytestmark = pytest.mark.django_db
DAY = 86_400
AMOUNT = 2_550
Act = Callable[[Payer], object]


def _stay(payer: Payer) -> None:
    """Have a card and no subscription."""


def _subscribe(payer: Payer) -> object:
    return payer.upsert(AMOUNT)


def _fail_to_subscribe(payer: Payer) -> None:
    payer.with_card(DECLINES)
    with pytest.raises(DomainError):
        payer.upsert(AMOUNT)


def _fall_behind(payer: Payer) -> None:
    setup = payer.account.capture(payer.customer.stripe_customer_id)
    _, card = get_billing_client().payment_method_of_setup(setup_intent_id=setup)
    payer.upsert(AMOUNT)
    payer.account.decline_from_now(card, "insufficient_funds")
    payer.account.pass_time(32 * DAY)


def _cancel(payer: Payer) -> object:
    return payer.cancel(immediately=False)


def _set_up(payer: Payer) -> object:
    return customers.setup_secret(user=payer.user, now=payer.account.now())


def _report(payer: Payer) -> object:
    return standing.report(user=payer.user, now=payer.account.now())


def _process(payer: Payer) -> None:
    assert isinstance(payer.account, FakeBilling)
    process_events(payer.account.events, now=payer.account.now())
    assert set(StripeEvent.objects.values_list("status", "last_error")) == {("processed", "")}


each_begin = pytest.mark.parametrize("begin", [_stay, _subscribe, _fail_to_subscribe, _fall_behind])


def _try(act: Act, payer: Payer) -> int:
    """Return the status that the wallet gets."""
    try:
        act(payer)
    except DomainError as error:
        return error.status
    return 200


@each_begin
@pytest.mark.parametrize("then", [_subscribe, _cancel, _set_up, _report, _process])
def test_a_deleted_customer_is_replaced_by_a_new_one(
    fake: FakeBilling, user: User, begin: Act, then: Act
) -> None:
    payer = Payer(fake, user).with_card()
    begin(payer)
    former = payer.customer
    fake.delete_customer(former.stripe_customer_id)
    assert _try(then, payer) in {200, 402, 404}
    assert _try(_subscribe, payer) == 402
    payer.with_card(VISA)
    assert payer.upsert(AMOUNT).status == Subscription.Status.ACTIVE
    former.refresh_from_db()
    assert former.deleted_at is not None
    assert Subscription.objects.live().get().customer == payer.customer != former


def _archive_product_and_prices(double: DoubleAccount, payer: Payer) -> None:
    for product in double.v1.products.list().data:
        double.v1.products.update(product.id, {"active": False})
    for price in double.v1.prices.list().data:
        double.v1.prices.update(price.id, {"active": False})


def _detach_cards(double: DoubleAccount, payer: Payer) -> None:
    for card in double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data:
        double.v1.payment_methods.detach(card.id)


@each_begin
@pytest.mark.parametrize("lose", [_archive_product_and_prices, _detach_cards])
def test_archived_and_detached_objects_leave_the_subscription_active(
    double: DoubleAccount, payer: Payer, lose: Callable[..., None], begin: Act
) -> None:
    double.controls.after_retries("leave")
    begin(payer)
    lose(double, payer)
    for act in (_report, _set_up, partial(Payer.upsert, amount=AMOUNT + 1)):
        assert _try(act, payer) in {200, 402, 404}
    payer.with_card(VISA)
    assert payer.upsert(AMOUNT).status == Subscription.Status.ACTIVE
    assert _try(_cancel, payer) == 200


def test_a_deleted_customer_stays_in_history_and_is_not_a_finding(
    double: DoubleAccount, payer: Payer
) -> None:
    payer.upsert(AMOUNT)
    former = payer.customer
    double.delete_customer(former.stripe_customer_id)
    _set_up(payer)
    assert payer.customer != former
    assert former.subscriptions.get().status == Subscription.Status.CANCELED
    run = reconciliation.reconcile(now=double.now())
    assert run is not None
    assert run.counts["customers"] == 1


def test_a_customer_that_the_account_never_had_is_not_taken_for_deleted(
    fake: FakeBilling, user: User
) -> None:
    payer = Payer(fake, user).with_card()
    Customer.objects.filter(user=user).update(stripe_customer_id=f"cus_{secrets.token_hex(7)}")
    with pytest.raises(BillingRefused):
        _set_up(payer)
    assert Customer.objects.get().deleted_at is None


def test_a_deleted_product_is_created_again_even_by_the_same_process(
    double: DoubleAccount, payer: Payer
) -> None:
    client = get_billing_client()
    assert isinstance(client, StripeBillingClient)
    client._ensure_product()
    (product,) = double.v1.products.list().data
    double.v1.products.delete(product.id)
    assert payer.upsert(AMOUNT).status == Subscription.Status.ACTIVE


def test_an_abandoned_command_of_a_deleted_customer_is_closed(fake: FakeBilling, user: User) -> None:
    payer = Payer(fake, user).with_card()
    former, now = payer.customer, fake.now()
    parameters = {
        "customer_id": former.stripe_customer_id,
        "amount_minor": AMOUNT,
        "currency": "usd",
        "cancels_at_period_end": False,
    }
    kind = BillingOperation.Kind.CREATE_SUBSCRIPTION
    begun = operations.begin(user=user, kind=kind, parameters=parameters, now=now)
    fake.delete_customer(former.stripe_customer_id)
    assert synchronisation.note_if_deleted(customer=former, now=now)
    operations.resume_abandoned(now=now + 2 * operations.ABANDONED_AFTER)
    begun.refresh_from_db()
    assert begun.status == "refused"


def test_an_active_row_of_a_deleted_customer_does_not_block_a_new_subscription(
    fake: FakeBilling, user: User
) -> None:
    payer = Payer(fake, user).with_card()
    left = payer.upsert(AMOUNT)
    # As after a restored database: the deletion is known, the subscription's end is not.
    fake.delete_customer(payer.customer.stripe_customer_id)
    Customer.objects.filter(pk=payer.customer.pk).update(deleted_at=fake.now())

    made = payer.with_card().upsert(AMOUNT)

    assert made.pk != left.pk
    assert (made.status, made.customer) == ("active", payer.customer)
