"""Hosted pages, used like a browser; and cards that banks decline off session."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
import stripe
import urllib3

from accounts import DAY, DoubleAccount, latest_invoice
from stripe_double.client import ControlClient

BACK = "https://wallet.example/back"
GOOD, DECLINED, AUTHENTICATION_REQUIRED = (
    "pm_card_visa",
    "pm_card_chargeCustomerFail",
    "pm_card_authenticationRequired",
)


def _get(url: str) -> str:
    return urllib3.request("GET", url).data.decode()


def _submit(url: str, **fields: str) -> tuple[int, str]:
    """Submit a form and confirm the challenge; return the status, and the redirect or the page."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    response = urllib3.request("POST", url, body=urlencode(fields), headers=headers, redirect=False)
    place = response.headers.get("Location", "")
    if "/_authenticate/" in place:
        return _submit(place, outcome="complete")
    return response.status, place or response.data.decode()


@pytest.fixture
def open_invoice(account: DoubleAccount, amount: int) -> stripe.Invoice:
    """Return the first invoice of a customer whose card was declined."""
    return latest_invoice(account.subscribe(account.create_paying_customer(DECLINED), amount))


@pytest.mark.parametrize(("card", "status"), [(GOOD, 303), (AUTHENTICATION_REQUIRED, 303), (DECLINED, 402)])
def test_an_open_invoice_is_paid_on_its_page(
    account: DoubleAccount, open_invoice: stripe.Invoice, amount: int, card: str, status: int
) -> None:
    url = str(open_invoice.hosted_invoice_url)
    assert f"{amount / 100:.2f} USD, open" in _get(url)
    assert "<form" not in _get(str(open_invoice.invoice_pdf))
    result, shown = _submit(url, payment_method=card)
    assert result == status
    paid = account.v1.invoices.retrieve(str(open_invoice.id)).status == "paid"
    assert paid == (status == 303)
    assert ('role="alert"' in shown) == (status == 402)
    assert ("<form" in _get(url)) == (status == 402)


@pytest.mark.parametrize(
    ("card", "status"), [(GOOD, 303), (AUTHENTICATION_REQUIRED, 303), ("pm_card_chargeDeclined", 402)]
)
def test_checkout_captures_a_card_and_sends_the_browser_back(
    account: DoubleAccount, card: str, status: int
) -> None:
    customer = account.create_customer()
    wanted: Any = {"mode": "setup", "customer": customer.id, "success_url": BACK, "cancel_url": BACK}
    session = account.v1.checkout.sessions.create(wanted)
    result, place = _submit(str(session.url), payment_method=card)
    if "/done" in place:
        place = urllib3.request("GET", place, redirect=False).headers["Location"]
    assert result == status
    assert (place == BACK) == (status == 303)
    session = account.v1.checkout.sessions.retrieve(session.id)
    assert session.status == ("complete" if status == 303 else "open")
    assert len(account.v1.customers.payment_methods.list(customer.id).data) == (status == 303)
    assert ("checkout.session.completed" in account.event_types("checkout.")) == (status == 303)


def test_the_portal_shows_invoices_cancels_resumes_and_takes_a_card(
    account: DoubleAccount, amount: int
) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    session = account.v1.billing_portal.sessions.create({"customer": customer.id, "return_url": BACK})
    page = _get(session.url)
    assert BACK in page
    assert str(latest_invoice(subscription).hosted_invoice_url) in page
    for name, ends in (("cancel", True), ("resume", False)):
        assert re.search(f'name="{name}"', _get(session.url))
        assert _submit(session.url, **{name: subscription.id}) == (303, session.url)
        assert bool(account.v1.subscriptions.retrieve(subscription.id).cancel_at) == ends
    assert _submit(session.url, payment_method=GOOD)[0] == 303
    newest = account.v1.customers.payment_methods.list(customer.id).data[0].id
    updated = account.v1.customers.retrieve(customer.id)
    assert updated.invoice_settings is not None
    assert updated.invoice_settings.default_payment_method == newest


def test_a_page_is_not_served_without_its_secret_address(account: DoubleAccount) -> None:
    for path in ("invoice/test_x", "portal/bps_x", "checkout/cs_test_x", "nothing/x"):
        assert urllib3.request("GET", f"{account.double.url}/_pages/{path}").status == 404


def test_a_bank_may_decline_an_off_session_payment_that_needs_confirmation(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    controls.off_session("decline")
    controls.after_retries("leave")
    customer = account.create_paying_customer(AUTHENTICATION_REQUIRED)
    subscription = account.subscribe(customer, amount)
    intent = account.v1.payment_intents.retrieve(account.payment_intent_of(subscription))
    assert intent.status == "requires_action"
    controls.authenticate(intent.id)
    controls.advance(33 * DAY)
    intent = account.v1.payment_intents.retrieve(account.payment_intent_of(subscription))
    assert (intent.status, intent.payment_method) == ("requires_payment_method", None)
    assert intent.last_payment_error is not None
    assert intent.last_payment_error.code == "authentication_required"
    assert account.v1.subscriptions.retrieve(subscription.id).status == "past_due"
