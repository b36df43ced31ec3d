"""Stripe's own pages, invoices and receipts on the wire."""

import json
import secrets
from itertools import product
from typing import Any

import pytest
import urllib3

from payments.models import Customer
from payments.stripe import set_billing_client
from tests.payments.api.conftest import NothingHappens, upsert
from tests.payments.payers import Payer
from tests.payments.rows import all_rows
from tests.payments.stripe_accounts import DECLINES, VISA, DoubleAccount
from tests.payments.webhook_events import process_all_events
from tests.relay.api.conftest import Wallet
from tests.relay.api.test_execute import assert_problem

pytestmark = pytest.mark.django_db
CARD_PAGE, PORTAL_PAGE = "/api/payments/cardPage", "/api/payments/portalPage"
INVOICES, RECEIPT_EMAIL = "/api/payments/invoices", "/api/payments/receiptEmail"
CARD = "/api/payments/card"
BACK = {"returnUrl": "https://wallet.example/credits?from=stripe"}


def _submit(url: str, card: str) -> None:
    urllib3.request(
        "POST",
        url,
        body=f"payment_method={card}",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        redirect=False,
    )


def test_a_card_captured_on_stripes_page_pays_the_subscription(double: DoubleAccount, wallet: Wallet) -> None:
    response = wallet.post(CARD_PAGE, BACK)
    assert response.status == 200
    assert response.headers["Cache-Control"] == "no-store"
    _submit(response.body["url"], VISA)
    assert upsert(wallet, 2550).status == 200


def test_an_open_invoice_is_listed_and_paid_on_its_page(
    double: DoubleAccount, payer: Payer, wallet: Wallet
) -> None:
    payer.with_card(DECLINES)
    assert upsert(wallet, 2550).status == 402
    (row,) = wallet.send("get", INVOICES).body["results"]
    assert (row["status"], row["total"], row["open"], row["tax"]) == ("open", 2550, 2550, 0)
    _submit(row["pageUrl"], VISA)
    process_all_events(double)
    (paid,) = wallet.send("get", INVOICES).body["results"]
    assert (paid["invoiceId"], paid["status"], paid["open"]) == (row["invoiceId"], "paid", 0)
    assert payer.subscription.status == "active"
    assert payer.payout.stripe_invoice_id == row["invoiceId"]


def test_invoices_are_paginated_and_only_the_users_own(
    double: DoubleAccount, payer: Payer, wallet: Wallet
) -> None:
    assert wallet.send("get", INVOICES).body == {"next": None, "results": []}
    upsert(wallet, 2550)
    other = double.v1.customers.create({}).id
    double.controls.create_invoice(other, 900, "usd")
    double.pass_time(65 * 86_400)
    seen, address = [], f"{INVOICES}?limit=2"
    while address:
        body = wallet.send("get", address).body
        seen.append([row["total"] for row in body["results"]])
        address = body["next"] and body["next"].split("testserver")[1]
    assert seen == [[2550, 2550], [2550]]


def test_a_page_that_cannot_be_is_refused(
    wallet: Wallet, payer: Payer, nothing_happens: NothingHappens
) -> None:
    with nothing_happens():
        for query in ("limit=0", "limit=101", "limit=x", "after=sub_1", "after=in_"):
            assert_problem(wallet.send("get", f"{INVOICES}?{query}"), 400, "invalid-request")


def test_the_portal_ends_a_subscription_which_is_seen_here(
    double: DoubleAccount, payer: Payer, wallet: Wallet
) -> None:
    upsert(wallet, 2550)
    url = wallet.post(PORTAL_PAGE, BACK).body["url"]
    subscription = payer.subscription
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    body = f"cancel={subscription.stripe_subscription_id}"
    urllib3.request("POST", url, body=body, headers=headers, redirect=False)
    process_all_events(double)
    subscription.refresh_from_db()
    assert subscription.cancels_at_period_end


def test_a_page_leads_back_to_an_https_address_alone(
    wallet: Wallet, payer: Payer, nothing_happens: NothingHappens
) -> None:
    texts = (
        "",
        "wallet.example",
        "javascript:alert(1)",
        "http://wallet.example/",
        "https:///x",
        "https://a b",
    )
    with nothing_happens():
        for path, address in product((CARD_PAGE, PORTAL_PAGE), (*texts, None)):
            assert_problem(wallet.post(path, {"returnUrl": address}), 400, "invalid-request")


def test_the_address_for_receipts_is_kept_at_stripe_alone_and_forgotten_on_request(
    double: DoubleAccount, payer: Payer, wallet: Wallet
) -> None:
    email = f"{secrets.token_hex(6)}@wallet.example"
    assert wallet.send("get", RECEIPT_EMAIL).body == {"email": None}
    assert wallet.post(RECEIPT_EMAIL, {"email": email}).body == {"email": email}
    assert wallet.send("get", RECEIPT_EMAIL).body == {"email": email}
    assert double.v1.customers.retrieve(payer.customer.stripe_customer_id).email == email
    assert email not in json.dumps(all_rows(), default=str)
    assert wallet.post(RECEIPT_EMAIL, {"email": None}).body == {"email": None}
    assert double.v1.customers.retrieve(payer.customer.stripe_customer_id).email is None
    assert_problem(wallet.post(RECEIPT_EMAIL, {"email": "nobody"}), 400, "invalid-request")


def test_the_card_is_read_at_stripe_and_kept_nowhere_here(
    double: DoubleAccount, payer: Payer, wallet: Wallet
) -> None:
    response = wallet.send("get", CARD)
    assert response.headers["Cache-Control"] == "no-store"
    card = response.body["card"]
    assert (card["brand"], card["last4"]) == ("visa", "4242")
    before = all_rows()
    assert wallet.send("get", CARD).body == {"card": card}
    assert all_rows() == before
    double.delete_customer(payer.customer.stripe_customer_id)
    assert wallet.send("get", CARD).body == {"card": None}


@pytest.mark.parametrize("ask", [CARD_PAGE, PORTAL_PAGE, RECEIPT_EMAIL])
def test_a_user_whose_customer_was_deleted_gets_a_page_of_a_new_one(
    double: DoubleAccount, payer: Payer, wallet: Wallet, ask: str
) -> None:
    former = payer.customer
    double.delete_customer(former.stripe_customer_id)
    for path in (INVOICES, RECEIPT_EMAIL):
        assert wallet.send("get", path).status == 200
    assert wallet.post(ask, BACK if ask != RECEIPT_EMAIL else {"email": "a@b.example"}).status == 200
    assert Customer.objects.current().get() != former


def test_tax_is_part_of_the_amount_and_pays_out_nothing(
    double: DoubleAccount, payer: Payer, wallet: Wallet, settings: Any, rates: dict[str, int]
) -> None:
    settings.STRIPE_AUTOMATIC_TAX = True
    set_billing_client(None)
    refused = upsert(wallet, 12_000)
    assert_problem(refused, 422, "address-required")
    assert "full address" in refused.body["detail"]
    _submit(wallet.post(CARD_PAGE, BACK).body["url"], f"{VISA}&country=DE")
    assert upsert(wallet, 12_000).status == 200
    process_all_events(double)
    payout = payer.payout
    assert (payout.amount_minor, payout.tax_minor) == (10_000, 2_000)
    assert payer.balance == payout.credits == 100 * rates["usd"]
    (row,) = wallet.send("get", INVOICES).body["results"]
    assert (row["total"], row["tax"]) == (12_000, 2_000)
    double.refund(payout.stripe_payment_intent_id, 6_000)
    process_all_events(double)
    assert payer.balance == payout.credits - payout.credits // 2
