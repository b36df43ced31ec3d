"""Purchases for a sponsor and its invoices, on the wire."""

import secrets
from typing import Any

import pytest

from credits.models import CreditAccount
from payments.models import CreditPack, Purchase
from sponsors.models import Member, Sponsor
from tests.factories import UserFactory
from tests.payments.api.conftest import NothingHappens
from tests.payments.buying import buy, new_pack
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events
from tests.relay.api.conftest import ApiResponse, Wallet, wallet_of
from tests.relay.api.test_execute import assert_problem
from tests.sponsors.sponsorships import make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def pack(rates: dict[str, int]) -> CreditPack:
    return new_pack()


@pytest.fixture
def sponsor(user: User) -> Sponsor:
    """A sponsor that the user manages."""
    row = make_sponsor(0)
    Member.objects.create(sponsor=row, user=user, role="manager")
    return row


def buy_for(sponsor: Sponsor, wallet: Wallet, body: Any, key: str | None = None) -> ApiResponse:
    path = f"/api/sponsors/{sponsor.slug}/purchases"
    return wallet.post(path, body, **{"Idempotency-Key": key or secrets.token_hex(8)})


def invoices(sponsor: Sponsor, wallet: Wallet, of_one: str = "") -> ApiResponse:
    return wallet.send("get", f"/api/sponsors/{sponsor.slug}/invoices{of_one}")


def test_a_manager_buys_a_pack_once_and_its_invoice_is_listed(
    double: DoubleAccount,
    payer: Payer,
    wallet: Wallet,
    sponsor: Sponsor,
    pack: CreditPack,
    rates: dict[str, int],
) -> None:
    key, worth = secrets.token_hex(8), pack.amount_minor * rates["usd"] // 100 + pack.bonus_credits
    first, again = (buy_for(sponsor, wallet, {"pack": pack.code}, key) for _ in range(2))
    assert first.status == 200
    assert first.body == again.body
    assert (first.body["status"], first.body["credits"]) == ("paid", worth)
    assert (CreditAccount.objects.get(sponsor=sponsor).balance, payer.balance) == (worth, 0)
    buy(payer, 700)  # For themselves, which is no invoice of the sponsor.
    (payout, _) = payer.purchases
    double.refund(payout.stripe_payment_intent_id, 100)
    process_all_events(double)

    listed = invoices(sponsor, wallet)

    (row,) = listed.body["results"]
    assert row == {
        "invoiceId": payout.stripe_invoice_id,
        "number": payout.invoice_number,
        "payer": payer.user.profile_address,
        "currency": "usd",
        "total": pack.amount_minor,
        "tax": 0,
        "returned": 100,
        "credits": worth,
        "creditsTakenBack": worth * 100 // pack.amount_minor,
        "createdAt": int(payout.created_at.timestamp()),
    }
    one = invoices(sponsor, wallet, f"/{payout.stripe_invoice_id}")
    assert (one.body["number"], one.body["total"]) == (payout.invoice_number, pack.amount_minor)
    assert one.body["pdfUrl"].startswith("http")
    other = payer.purchases[1].stripe_invoice_id
    assert_problem(invoices(sponsor, wallet, f"/{other}"), 404, "not-found")


def test_only_managers_of_a_sponsor_buy_for_it(
    double: DoubleAccount, payer: Payer, wallet: Wallet, pack: CreditPack, anonymous: Wallet,
    nothing_happens: NothingHappens,
) -> None:  # fmt: skip
    sponsor, viewer = make_sponsor(0), UserFactory.create()
    Payer(double, viewer).with_card()
    Member.objects.create(sponsor=sponsor, user=viewer, role="viewer")
    with nothing_happens():
        body = {"pack": pack.code}
        assert_problem(buy_for(sponsor, wallet_of(viewer), body), 403, "permission-denied")
        assert_problem(buy_for(sponsor, wallet, body), 404, "not-found")
        assert_problem(buy_for(sponsor, anonymous, body), 401, "not-authenticated")
        assert_problem(invoices(sponsor, wallet), 404, "not-found")
        assert_problem(buy_for(sponsor, wallet_of(viewer), body, "a b"), 403, "permission-denied")
    assert not Purchase.objects.exists()
    assert invoices(sponsor, wallet_of(viewer)).body["results"] == []
