"""POST upsertSubscription on the wire."""

import random
from collections.abc import Callable

import pytest
from django.conf import settings

from payments.models import BillingOperation, Customer, Subscription
from payments.services import operations
from stripe_double.client import ControlClient
from tests.payments.api.conftest import NothingHappens, upsert
from tests.payments.api.spec import SETUP_INTENT, UPSERT, as_specified
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, DoubleAccount
from tests.payments.webhook_events import process_all_events
from tests.relay.api.conftest import Wallet
from tests.relay.api.test_execute import assert_problem
from users.models import User

pytestmark = pytest.mark.django_db
SUBSCRIPTIONS = "/v1/subscriptions"


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_subscription_of_25_50_a_month(
    double: DoubleAccount, payer: Payer, wallet: Wallet, slash: str
) -> None:
    body = as_specified(wallet.post(UPSERT + slash, {"subscriptionCost": 2550}), UPSERT)
    (subscription,) = double.v1.subscriptions.list().data
    assert body == {
        "subscriptionId": subscription.id,
        "subscriptionFor": payer.customer.stripe_customer_id,
        "subscriptionAmount": "$25.50",
    }
    assert (subscription.currency, subscription.cancel_at_period_end, subscription.status) == (
        "usd",
        False,
        "active",
    )
    assert [item.price.unit_amount for item in subscription["items"].data] == [2550]


@pytest.mark.parametrize(("currency", "symbol"), [("usd", "$"), ("eur", "€"), ("gbp", "£"), ("chf", "CHF")])
def test_the_amount_is_shown_with_the_currencys_own_symbol(
    double: DoubleAccount, payer: Payer, wallet: Wallet, currency: str, symbol: str
) -> None:
    cost = random.randint(100, 999_999)
    spelled = random.choice([currency, currency.upper(), currency.title()])
    body = as_specified(upsert(wallet, cost, currency=spelled), UPSERT)
    assert body["subscriptionAmount"] == f"{symbol}{cost // 100}.{cost % 100:02}"
    assert double.v1.subscriptions.retrieve(body["subscriptionId"]).currency == currency


def test_the_same_values_again_return_the_same_and_change_nothing(
    double: DoubleAccount, payer: Payer, wallet: Wallet, amount: int
) -> None:
    first = as_specified(upsert(wallet, amount), UPSERT)
    with double.frozen_log() as orders:
        again = upsert(wallet, amount, currency="USD", cancelAtEndOfBillingPeriod=False)
    assert as_specified(again, UPSERT) == first
    assert orders == []
    assert Subscription.objects.count() == 1


def test_a_changed_amount_is_shown_at_once_and_collected_later(
    double: DoubleAccount, payer: Payer, wallet: Wallet
) -> None:
    first = as_specified(upsert(wallet, 2550), UPSERT)
    changed = as_specified(upsert(wallet, 1000), UPSERT)
    assert changed == {**first, "subscriptionAmount": "$10.00"}
    assert [invoice.amount_paid for invoice in double.v1.invoices.list().data] == [2550]


def test_an_end_with_the_period_is_switched_on_off_and_on(
    double: DoubleAccount, payer: Payer, wallet: Wallet, amount: int
) -> None:
    results = []
    for cancels in (False, True, False, True):
        results.append(as_specified(upsert(wallet, amount, cancelAtEndOfBillingPeriod=cancels), UPSERT))
        (subscription,) = double.v1.subscriptions.list().data
        assert (subscription.status, subscription.cancel_at_period_end) == ("active", cancels)
    assert results.count(results[0]) == 4
    # Left out, it means false, and resumes.
    upsert(wallet, amount)
    assert not double.v1.subscriptions.list().data[0].cancel_at_period_end
    assert len(double.posts(SUBSCRIPTIONS)) == 1


def test_a_new_subscription_may_end_with_its_first_period(
    double: DoubleAccount, payer: Payer, wallet: Wallet
) -> None:
    as_specified(upsert(wallet, 900, cancelAtEndOfBillingPeriod=True), UPSERT)
    process_all_events(double)
    double.pass_time(32 * 86_400)
    process_all_events(double)
    assert payer.subscription.status == "canceled"
    assert len(payer.payouts) == 1


def test_without_a_card_the_error_requires_one(
    double: DoubleAccount, wallet: Wallet, user: User, nothing_happens: NothingHappens
) -> None:
    as_specified(wallet.send("get", SETUP_INTENT), SETUP_INTENT)
    with nothing_happens():
        response = upsert(wallet, 2550)
    assert assert_problem(response, 402, "payment-method-required") == {}


def test_a_new_user_without_a_card_becomes_a_customer_and_nothing_more(
    double: DoubleAccount, wallet: Wallet, user: User
) -> None:
    assert_problem(upsert(wallet, 2550), 402, "payment-method-required")
    assert Customer.objects.get().user == user
    assert not Subscription.objects.exists()
    assert list(BillingOperation.objects.values_list("kind", "status")) == [("create-customer", "done")]
    assert [order.path for order in double.controls.requests("POST")] == ["/v1/customers"]


@pytest.mark.parametrize("code", ["fraudulent", "lost_card", "merchant_blacklist", "stolen_card"])
def test_no_response_tells_what_only_the_bank_may_tell(
    double: DoubleAccount, wallet: Wallet, user: User, amount: int, code: str
) -> None:
    payer = Payer(double, user).with_card(DECLINES)
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.decline_from_now(card.id, code)
    for response in (upsert(wallet, amount), upsert(wallet, amount)):
        assert assert_problem(response, 402, "card-declined") == {"declineCode": "generic_decline"}
    report = wallet.send("get", "/api/payments/subscription")
    assert report.body["declineCode"] == "generic_decline"


def test_the_error_for_a_declined_card_has_stripes_decline_code(
    double: DoubleAccount, wallet: Wallet, user: User, amount: int
) -> None:
    payer = Payer(double, user).with_card(DECLINES)
    members = assert_problem(upsert(wallet, amount), 402, "card-declined")
    assert members == {"declineCode": "generic_decline"}
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.decline_from_now(card.id, "insufficient_funds")
    members = assert_problem(upsert(wallet, amount), 402, "card-declined")
    assert members == {"declineCode": "insufficient_funds"}
    process_all_events(double)
    assert (payer.balance, len(payer.payouts)) == (0, 0)
    assert len(double.posts(SUBSCRIPTIONS)) == 1
    payer.with_card()
    process_all_events(double)
    body = as_specified(upsert(wallet, amount), UPSERT)
    assert body["subscriptionId"] == payer.subscription.stripe_subscription_id
    assert payer.payout.amount_minor == amount


def test_a_card_that_requires_3_d_secure_is_confirmed_by_the_wallet(
    double: DoubleAccount, wallet: Wallet, user: User, amount: int
) -> None:
    payer = Payer(double, user).with_card(NEEDS_CONFIRMATION)
    members = assert_problem(upsert(wallet, amount), 402, "authentication-required")
    assert list(members) == ["clientSecret"]
    intent = double.v1.payment_intents.retrieve(members["clientSecret"].split("_secret_")[0])
    assert (intent.client_secret, intent.status, intent.amount) == (
        members["clientSecret"],
        "requires_action",
        amount,
    )
    double.confirm(members["clientSecret"])
    body = as_specified(upsert(wallet, amount), UPSERT)
    assert body["subscriptionId"] == payer.subscription.stripe_subscription_id
    assert len(double.posts(SUBSCRIPTIONS)) == 1
    assert [invoice.amount_paid for invoice in double.v1.invoices.list().data] == [amount]


@pytest.mark.parametrize(("currency", "least"), [("usd", 50), ("eur", 50), ("gbp", 30), ("chf", 50)])
def test_less_than_can_be_charged_is_refused_with_the_least(
    payer: Payer, wallet: Wallet, nothing_happens: NothingHappens, currency: str, least: int
) -> None:
    with nothing_happens():
        responses = [upsert(wallet, cost, currency=currency) for cost in (1, least - 1)]
    assert [assert_problem(response, 400, "amount-too-small") for response in responses] == [
        {"minimum": least}
    ] * 2
    as_specified(upsert(wallet, least, currency=currency), UPSERT)


def test_more_than_is_sold_is_refused_with_the_most(
    payer: Payer, wallet: Wallet, nothing_happens: NothingHappens
) -> None:
    most = settings.BILLING_MAX_AMOUNT_MINOR
    with nothing_happens():
        for cost in (most + 1, 2**63, 10**30, 10**4000):
            assert assert_problem(upsert(wallet, cost), 400, "amount-too-large") == {"maximum": most}
    as_specified(upsert(wallet, most), UPSERT)


def test_a_currency_that_is_not_sold_is_refused_with_those_that_are(
    payer: Payer, wallet: Wallet, nothing_happens: NothingHappens
) -> None:
    with nothing_happens():
        for currency in ("jpy", "JPY", "aud", "xxx"):
            members = assert_problem(upsert(wallet, 5000, currency=currency), 400, "currency-not-supported")
            assert members == {"supported": list(settings.BILLING_CURRENCIES)}


def test_another_currency_on_a_running_subscription_is_a_conflict(
    double: DoubleAccount, payer: Payer, wallet: Wallet, amount: int
) -> None:
    as_specified(upsert(wallet, amount), UPSERT)
    before = Subscription.objects.values_list("amount_minor", "currency", "status").get()
    with double.frozen_log() as orders:
        members = assert_problem(upsert(wallet, amount + 1, currency="eur"), 409, "currency-fixed")
    assert members == {"currency": "usd"}
    assert orders == []
    assert Subscription.objects.values_list("amount_minor", "currency", "status").get() == before
    assert not BillingOperation.objects.filter(kind="update-subscription").exists()


FAULTS: dict[str, Callable[[ControlClient], None]] = {
    "409": lambda controls: controls.fail(409, count=None),
    "429": lambda controls: controls.fail(429, count=None),
    "500": lambda controls: controls.fail(500, count=None),
    "500 on orders alone": lambda controls: controls.fail(500, count=None, method="POST"),
    "500 kept for the key": lambda controls: controls.fail(500, count=9, path=SUBSCRIPTIONS, saved=True),
    "500 after commit": lambda controls: controls.error_after_commit(count=None),
    "500 after commit, kept": lambda controls: controls.error_after_commit(
        count=None, method="POST", path=SUBSCRIPTIONS, saved=True
    ),
    "broken off after commit": lambda controls: controls.timeout_after_commit(0, count=None),
    "broken off after the subscription": lambda controls: controls.timeout_after_commit(
        0, count=None, path=SUBSCRIPTIONS
    ),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", FAULTS)
def test_any_failure_of_stripe_ends_in_503_or_success_and_one_charge(
    double: DoubleAccount, payer: Payer, wallet: Wallet, amount: int, fault: str
) -> None:
    FAULTS[fault](double.controls)
    response = upsert(wallet, amount)
    double.controls.clear_faults()
    if response.status != 200:
        assert_problem(response, 503, "billing-unavailable")
        assert response.headers["Retry-After"] in {"5", "60"}
    body = as_specified(upsert(wallet, amount), UPSERT)
    (subscription,) = double.v1.subscriptions.list({"status": "all"}).data
    assert subscription.id == body["subscriptionId"]
    assert len(subscription["items"].data) == 1
    assert [charge.amount for charge in double.v1.charges.list().data] == [amount]
    assert not BillingOperation.objects.exclude(status="done").exists()


@pytest.mark.usefixtures("impatient")
def test_an_unreachable_stripe_is_a_503_and_the_sweep_creates_the_subscription(
    double: DoubleAccount, payer: Payer, wallet: Wallet, amount: int
) -> None:
    double.controls.fail(500, count=None, method="POST", path=SUBSCRIPTIONS)
    assert_problem(upsert(wallet, amount), 503, "billing-unavailable")
    double.controls.clear_faults()
    assert not Subscription.objects.exists()
    assert operations.resume_abandoned(now=double.now() + 2 * operations.ABANDONED_AFTER) == 1
    body = as_specified(upsert(wallet, amount), UPSERT)
    assert body["subscriptionId"] == Subscription.objects.get().stripe_subscription_id
    assert len(double.v1.subscriptions.list({"status": "all"}).data) == 1


def test_the_error_for_a_cost_in_major_units_names_the_number_to_send(
    double: DoubleAccount, wallet: Wallet
) -> None:
    for sent, minor in ((25.5, 2550), ("25.50", 2550), (0.99, 99), (1234.56, 123456)):
        response = wallet.post(UPSERT, {"subscriptionCost": sent})
        assert response.status == 400
        assert f"is {minor}." in response.body["errors"][0]["detail"]
    assert double.v1.subscriptions.list().data == []
    assert not BillingOperation.objects.exists()


def test_the_error_for_an_ambiguous_fractional_cost_names_no_other_number(wallet: Wallet) -> None:
    for sent in ("2550.0", "2550", "1e3", "25.505", -25.5):
        response = wallet.post(UPSERT, {"subscriptionCost": sent})
        assert response.status == 400
        assert "minor units" not in str(response.body)
