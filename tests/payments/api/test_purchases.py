"""Packs, purchases and automatic top-up on the wire."""

import secrets
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import uuid4

import pytest
from pytest_django import Settings

from payments.models import AutoTopUp, CreditPack, Purchase
from payments.services import refunds
from tests.payments.api.conftest import NothingHappens
from tests.payments.buying import new_pack
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, DoubleAccount
from tests.payments.webhook_events import process_all_events
from tests.relay.api.conftest import ApiResponse, Wallet
from tests.relay.api.test_execute import assert_problem

pytestmark = pytest.mark.django_db
PACKS = "/api/payments/packs"
PURCHASE = "/api/payments/purchaseCredits"
PURCHASES, UNDO = "/api/payments/purchases", "/api/payments/undoPurchase"
TOP_UP = "/api/payments/topUp"
CONSENT = "Buy this pack whenever my credits run low, up to the limit of each month."


@pytest.fixture
def pack(rates: dict[str, int]) -> CreditPack:
    return new_pack()


def buy(wallet: Wallet, body: Any, key: str | None = None) -> ApiResponse:
    return wallet.post(PURCHASE, body, **{"Idempotency-Key": key or secrets.token_hex(8)})


def put(wallet: Wallet, body: Any) -> ApiResponse:
    return wallet.send("put", TOP_UP, data=body, content_type="application/json")


@pytest.mark.parametrize("slash", ["", "/"])
def test_packs_are_listed_with_all_that_they_give(
    wallet: Wallet, pack: CreditPack, rates: dict[str, int], slash: str
) -> None:
    CreditPack.objects.exclude(pk=pack.pk).update(is_offered=False)
    response = wallet.send("get", PACKS + slash)
    assert response.status == 200
    (row,) = response.body["packs"]
    assert row == {
        "pack": pack.code,
        "currency": "usd",
        "cost": pack.amount_minor,
        "amount": f"${pack.amount_minor / 100:.2f}",
        "credits": pack.amount_minor * rates["usd"] // 100 + pack.bonus_credits,
        "bonusCredits": pack.bonus_credits,
    }
    by_currency = {row["currency"]: row for row in response.body["currencies"]}
    assert {name: row["creditsPerMajorUnit"] for name, row in by_currency.items()} == rates
    assert by_currency["gbp"]["minimum"] == 30


def test_a_bought_pack_is_returned_and_a_repeat_gets_the_same(
    double: DoubleAccount, payer: Payer, wallet: Wallet, pack: CreditPack, rates: dict[str, int]
) -> None:
    key = secrets.token_hex(8)
    first, again = (buy(wallet, {"pack": pack.code}, key) for _ in range(2))
    assert first.status == 200
    made = Purchase.objects.get()
    assert (
        first.body
        == again.body
        == {
            "purchaseId": str(made.pk),
            "status": "paid",
            "pack": pack.code,
            "cost": pack.amount_minor,
            "currency": "usd",
            "credits": payer.balance,
            "createdAt": int(made.created_at.timestamp()),
            "undoUntil": int(cast("datetime", made.finished_at).timestamp()) + 3600,
            "undo": "",
        }
    )
    assert first.headers["Cache-Control"] == "no-store"
    assert payer.balance == pack.amount_minor * rates["usd"] // 100 + pack.bonus_credits
    other = buy(wallet, {"amount": 2550, "currency": "EUR"})
    assert (other.body["pack"], other.body["cost"], other.body["currency"]) == (None, 2550, "eur")
    assert other.body["credits"] == 2550 * rates["eur"] // 100


def test_packs_in_the_own_currency_come_first_and_those_of_others_in_one_order(
    payer: Payer, wallet: Wallet, rates: dict[str, int]
) -> None:
    CreditPack.objects.update(is_offered=False)
    for currency in ("usd", "gbp", "eur", "chf"):
        new_pack(currency=currency)

    def shown() -> tuple[Any, list[str], list[str]]:
        body = wallet.send("get", PACKS).body
        names = ("packs", "currencies")
        packs, currencies = ([row["currency"] for row in body[name]] for name in names)
        return body["ownCurrency"], packs, currencies

    assert shown() == (None, *[["usd", "eur", "gbp", "chf"]] * 2)
    assert buy(wallet, {"amount": 2550, "currency": "gbp"}).status == 200
    assert shown() == ("gbp", *[["gbp", "usd", "eur", "chf"]] * 2)


def test_reading_packs_and_purchases_takes_nothing_from_the_rate_of_payments(
    payer: Payer, wallet: Wallet, settings: Settings
) -> None:
    settings.BILLING_RATE = "1/hour"
    assert [wallet.send("get", path).status for path in (PACKS, PURCHASES) * 2] == [200] * 4
    assert [wallet.send("get", TOP_UP).status for _ in range(2)] == [200, 429]


def test_the_newest_purchase_is_undone_and_listed_as_such(
    double: DoubleAccount, payer: Payer, wallet: Wallet, pack: CreditPack, nothing_happens: NothingHappens
) -> None:
    older, newest = (buy(wallet, {"pack": pack.code}).body for _ in range(2))
    listed = wallet.send("get", PURCHASES).body["results"]
    assert listed == [newest, older]
    body = {"purchaseId": newest["purchaseId"]}
    undone = wallet.post(UNDO, body).body
    assert undone == {**newest, "undoUntil": None, "undo": "pending"}
    refunds.send_pending(now=double.now())
    process_all_events(double)
    assert wallet.post(UNDO, body).body == {**undone, "undo": "done"}
    assert payer.balance == older["credits"]
    listed = wallet.send("get", PURCHASES).body["results"]
    assert [row["undo"] for row in listed] == ["done", ""]

    with nothing_happens():
        unknown = {"purchaseId": str(uuid4())}
        assert_problem(wallet.post(UNDO, unknown), 404, "unknown-purchase")
        assert_problem(wallet.post(UNDO, {}), 400, "invalid-request")
        Purchase.objects.filter(pk=older["purchaseId"]).update(finished_at=double.now() - timedelta(hours=1))
        late = wallet.post(UNDO, {"purchaseId": older["purchaseId"]})
        assert_problem(late, 409, "undo-refused")
        assert late.body["reason"] == "too-late"
        assert wallet.send("get", PURCHASES).body["results"][1]["undoUntil"] is None


@pytest.mark.parametrize(
    ("card", "code", "member"),
    [
        (DECLINES, "card-declined", "declineCode"),
        (NEEDS_CONFIRMATION, "authentication-required", "clientSecret"),
    ],
)
def test_a_failed_payment_is_402_with_the_data_that_the_wallet_needs(
    double: DoubleAccount, payer: Payer, wallet: Wallet, pack: CreditPack, card: str, code: str, member: str
) -> None:
    double.capture(payer.customer.stripe_customer_id, card)
    response = buy(wallet, {"pack": pack.code})
    assert_problem(response, 402, code)
    assert response.body[member]


def test_other_bodies_are_refused(payer: Payer, wallet: Wallet, nothing_happens: NothingHappens) -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"pack": "x", "amount": 500},
        {"amount": 25.5},
        {"amount": -1},
        {"pack": None},
        {"amount": 500, "currency": "€"},
    ]
    with nothing_happens():
        for body in bodies:
            assert_problem(buy(wallet, body), 400, "invalid-request")


def test_requests_that_cannot_be_carried_out_are_named(
    payer: Payer, wallet: Wallet, pack: CreditPack, anonymous: Wallet, nothing_happens: NothingHappens
) -> None:
    with nothing_happens():
        for key in ("", "x" * 129, "a b"):
            sent = wallet.post(PURCHASE, {"pack": pack.code}, **{"Idempotency-Key": key})
            assert_problem(sent, 400, "invalid-request")
        assert_problem(wallet.post(PURCHASE, {"pack": pack.code}), 400, "invalid-request")
        assert_problem(buy(wallet, {"pack": "none"}), 404, "unknown-pack")
        assert_problem(buy(wallet, {"amount": 49}), 400, "amount-too-small")
        assert_problem(buy(wallet, {"amount": 5_000, "currency": "jpy"}), 400, "currency-not-supported")
        assert_problem(buy(anonymous, {"pack": pack.code}), 401, "not-authenticated")
    key = secrets.token_hex(8)
    assert buy(wallet, {"pack": pack.code}, key).status == 200
    assert_problem(buy(wallet, {"amount": 777}, key), 409, "purchase-differs")


def test_top_up_is_turned_on_shown_and_turned_off(
    double: DoubleAccount, payer: Payer, wallet: Wallet, pack: CreditPack
) -> None:
    off = wallet.send("get", TOP_UP)
    assert (off.status, off.body["status"], off.body["consentedAt"]) == (200, "off", None)
    terms = {"threshold": 200, "pack": pack.code, "monthlyLimit": pack.amount_minor, "consent": CONSENT}
    on = put(wallet, {"enabled": True, **terms})
    assert on.status == 200
    assert on.body == wallet.send("get", TOP_UP).body
    given = AutoTopUp.objects.get()
    assert on.body == {
        "status": "on",
        **terms,
        "cost": pack.amount_minor,
        "currency": "usd",
        "spentThisMonth": 0,
        "consentedAt": int(given.consented_at.timestamp()),
        "pausedReason": "",
        "declineCode": "",
        "lastPurchaseAt": None,
    }
    put(wallet, {"enabled": True, **terms, "threshold": 300})
    earlier, current = AutoTopUp.objects.order_by("pk")
    assert (earlier.threshold, earlier.withdrawn_at is None) == (200, False)
    assert (current.threshold, current.withdrawn_at) == (300, None)
    gone = put(wallet, {"enabled": False})
    assert (gone.body["status"], gone.body["threshold"]) == ("off", 300)
    assert not AutoTopUp.objects.filter(withdrawn_at=None).exists()


def test_invalid_terms_of_a_consent_are_refused(
    payer: Payer, wallet: Wallet, pack: CreditPack, nothing_happens: NothingHappens
) -> None:
    terms = {"threshold": 200, "pack": pack.code, "monthlyLimit": 10_000, "consent": CONSENT}
    faults: list[dict[str, Any]] = [
        {"threshold": 0}, {"monthlyLimit": 1}, {"consent": "yes"}, {"enabled": "true"}, {"pack": None},
    ]  # fmt: skip
    with nothing_happens():
        for fault in faults:
            assert_problem(put(wallet, {"enabled": True, **terms, **fault}), 400, "invalid-request")
        assert_problem(put(wallet, {"enabled": True}), 400, "invalid-request")
    assert not AutoTopUp.objects.exists()
