"""3-D Secure: challenges completed and failed, by the control API and in a browser."""

import pytest
import stripe
import urllib3

from accounts import DoubleAccount
from stripe_double.client import ControlClient, ControlError


def test_a_completed_challenge_completes_the_setup(account: DoubleAccount, controls: ControlClient) -> None:
    customer = account.create_customer()
    intent = account.set_up_card(customer, "pm_card_authenticationRequired")
    controls.authenticate(intent.id)
    done = account.v1.setup_intents.retrieve(intent.id, {"expand": ["payment_method"]})
    assert done.status == "succeeded"
    assert isinstance(done.payment_method, stripe.PaymentMethod)
    assert done.payment_method.customer == customer.id
    assert account.event_types("setup_intent.")[-2:] == [
        "setup_intent.requires_action",
        "setup_intent.succeeded",
    ]


def test_a_failed_challenge_leaves_the_setup_without_a_card(
    account: DoubleAccount, controls: ControlClient
) -> None:
    intent = account.set_up_card(account.create_customer(), "pm_card_threeDSecure2Required")
    controls.authenticate(intent.id, succeeds=False)
    failed = account.v1.setup_intents.retrieve(intent.id)
    assert (failed.status, failed.payment_method) == ("requires_payment_method", None)
    assert failed.last_setup_error is not None
    assert failed.last_setup_error.code == "setup_intent_authentication_failure"
    with pytest.raises(ControlError):
        controls.authenticate(intent.id)


@pytest.mark.parametrize(("succeeds", "status"), [(True, "active"), (False, "incomplete")])
def test_the_first_payment_depends_on_its_challenge(
    succeeds: bool, status: str, account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    subscription = account.subscribe(account.create_paying_customer("pm_card_authenticationRequired"), amount)
    controls.authenticate(account.payment_intent_of(subscription), succeeds=succeeds)
    assert account.v1.subscriptions.retrieve(subscription.id).status == status
    assert ("invoice.paid" in account.event_types("invoice.")) is succeeds


def test_a_card_that_was_set_up_is_charged_off_session(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    customer = account.create_customer()
    intent = account.set_up_card(customer, "pm_card_authenticationRequiredOnSetup")
    controls.authenticate(intent.id)
    card = str(account.v1.setup_intents.retrieve(intent.id).payment_method)
    on_session = account.subscribe(customer, amount, default_payment_method=card)
    assert on_session.status == "incomplete"
    off_session = account.subscribe(customer, amount, default_payment_method=card, off_session=True)
    assert off_session.status == "active"


def test_a_card_without_funds_is_set_up_and_then_declined(account: DoubleAccount, amount: int) -> None:
    customer = account.create_customer()
    intent = account.set_up_card(customer, "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds")
    assert intent.status == "succeeded"
    with pytest.raises(stripe.CardError) as raised:
        account.subscribe(
            customer,
            amount,
            default_payment_method=intent.payment_method,
            off_session=True,
            payment_behavior="error_if_incomplete",
        )
    assert raised.value.error is not None
    assert raised.value.error.decline_code == "insufficient_funds"


def challenge(account: DoubleAccount) -> tuple[str, str]:
    """Return a setup intent that requires action, and the URL of its challenge."""
    intent = account.set_up_card(account.create_customer(), "pm_card_authenticationRequired")
    assert intent.next_action is not None
    assert intent.next_action.redirect_to_url is not None
    return intent.id, str(intent.next_action.redirect_to_url.url)


def submit(url: str, outcome: str) -> urllib3.BaseHTTPResponse:
    """Press a button on the page."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    return urllib3.request("POST", url, body=f"outcome={outcome}", headers=form, redirect=False)


def test_the_page_completes_the_setup_and_redirects_to_the_return_url(account: DoubleAccount) -> None:
    intent, url = challenge(account)
    assert "Do you want to go on" in urllib3.request("GET", url).data.decode()
    response = submit(url, "complete")
    assert (response.status, response.headers["Location"]) == (303, "https://wallet.example/back")
    assert account.v1.setup_intents.retrieve(intent).status == "succeeded"
    assert "This is done." in submit(url, "complete").data.decode()


def test_the_page_can_fail_the_setup(account: DoubleAccount) -> None:
    intent, url = challenge(account)
    submit(url, "fail")
    assert account.v1.setup_intents.retrieve(intent).status == "requires_payment_method"


def test_the_page_completes_a_payment_and_makes_the_subscription_active(
    account: DoubleAccount, amount: int
) -> None:
    customer = account.create_paying_customer("pm_card_authenticationRequired")
    subscription = account.subscribe(customer, amount, payment_behavior="default_incomplete")
    assert isinstance(subscription.latest_invoice, stripe.Invoice)
    assert subscription.latest_invoice.confirmation_secret is not None
    intent = subscription.latest_invoice.confirmation_secret.client_secret.split("_secret_")[0]
    assert customer.invoice_settings is not None
    confirmed = account.v1.payment_intents.confirm(
        intent,
        {
            "payment_method": str(customer.invoice_settings.default_payment_method),
            "return_url": "https://wallet.example/back",
        },
    )
    assert confirmed.next_action is not None
    assert confirmed.next_action.redirect_to_url is not None
    assert submit(str(confirmed.next_action.redirect_to_url.url), "complete").status == 303
    assert account.v1.subscriptions.retrieve(subscription.id).status == "active"


def test_the_page_needs_the_client_secret(account: DoubleAccount) -> None:
    intent, url = challenge(account)
    assert submit(url.split("?")[0], "complete").status == 404
    assert account.v1.setup_intents.retrieve(intent).status == "requires_action"
