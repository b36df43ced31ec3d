"""The page that a cardholder is sent to."""

import stripe
import urllib3

from tests.devstack.stripe.worlds import DoubleWorld


def page_of(here: DoubleWorld) -> tuple[str, str]:
    """Return an intent that asks, and the address it sends its cardholder to."""
    intent = here.set_up(here.new_customer(), "pm_card_authenticationRequired")
    assert intent.next_action is not None
    assert intent.next_action.redirect_to_url is not None
    return intent.id, str(intent.next_action.redirect_to_url.url)


def answer(url: str, outcome: str) -> urllib3.BaseHTTPResponse:
    """Press a button on the page."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    return urllib3.request("POST", url, body=f"outcome={outcome}", headers=form, redirect=False)


def test_agreeing_completes_the_setup_and_leads_back_to_the_shop(here: DoubleWorld) -> None:
    intent, url = page_of(here)
    assert "Do you want to go on" in urllib3.request("GET", url).data.decode()
    back = answer(url, "complete")
    assert (back.status, back.headers["Location"]) == (303, "https://wallet.example/back")
    assert here.v1.setup_intents.retrieve(intent).status == "succeeded"
    assert "This is done." in answer(url, "complete").data.decode()


def test_not_agreeing_leaves_the_setup_without_a_card(here: DoubleWorld) -> None:
    intent, url = page_of(here)
    answer(url, "fail")
    assert here.v1.setup_intents.retrieve(intent).status == "requires_payment_method"


def test_agreeing_to_a_payment_makes_the_subscription_active(here: DoubleWorld, amount: int) -> None:
    customer = here.new_payer("pm_card_authenticationRequired")
    subscription = here.subscribe(customer, amount, payment_behavior="default_incomplete")
    assert isinstance(subscription.latest_invoice, stripe.Invoice)
    assert subscription.latest_invoice.confirmation_secret is not None
    intent = subscription.latest_invoice.confirmation_secret.client_secret.split("_secret_")[0]
    assert customer.invoice_settings is not None
    confirmed = here.v1.payment_intents.confirm(
        intent,
        {
            "payment_method": str(customer.invoice_settings.default_payment_method),
            "return_url": "https://wallet.example/back",
        },
    )
    assert confirmed.next_action is not None
    assert confirmed.next_action.redirect_to_url is not None
    assert answer(str(confirmed.next_action.redirect_to_url.url), "complete").status == 303
    assert here.v1.subscriptions.retrieve(subscription.id).status == "active"


def test_without_the_client_secret_there_is_nothing_to_see(here: DoubleWorld) -> None:
    intent, url = page_of(here)
    assert answer(url.split("?")[0], "complete").status == 404
    assert here.v1.setup_intents.retrieve(intent).status == "requires_action"
