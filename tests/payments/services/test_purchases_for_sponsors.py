"""Packs that a person buys for a sponsor: the sponsor has the credits, and returned money takes them back."""

import secrets

import pytest

from credits.models import CreditAccount, CreditEntry
from payments.errors import PurchaseDiffers
from payments.models import Clawback, CreditPack, Purchase
from payments.services import deletion, purchases, refunds
from payments.services.purchases import Order
from rewards.models import ExperienceEntry
from sponsors.models import Sponsor
from tests.database import tamper
from tests.fakes.billing import FakeBilling
from tests.payments.buying import buy, new_pack
from tests.payments.payers import Payer
from tests.payments.reconciling import assert_no_findings, findings
from tests.payments.webhook_events import process_events
from tests.sponsors.sponsorships import make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def payer(fake: FakeBilling, user: User) -> Payer:
    return Payer(fake, user).with_card()


@pytest.fixture
def sponsor() -> Sponsor:
    return make_sponsor(0)


@pytest.fixture
def pack(rates: dict[str, int]) -> CreditPack:
    return new_pack()


def buy_for(sponsor: Sponsor, payer: Payer, pack: CreditPack, key: str = "") -> Purchase:
    order = Order(pack.amount_minor, pack.currency, pack, sponsor=sponsor)
    return purchases.buy(
        user=payer.user, order=order, key=key or secrets.token_hex(8), now=payer.account.now()
    )


def balance_of(sponsor: Sponsor) -> int:
    return CreditAccount.objects.get(sponsor=sponsor).balance


def test_the_sponsor_gets_the_credits_and_the_payer_neither_credits_nor_experience(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, pack: CreditPack, rates: dict[str, int]
) -> None:
    worth, key = pack.amount_minor * rates["usd"] // 100 + pack.bonus_credits, secrets.token_hex(8)
    for _ in range(2):
        assert buy_for(sponsor, payer, pack, key).status == "paid"
        process_events(fake.events, now=fake.now())
        entry = CreditEntry.objects.get()
        assert (entry.account.sponsor, entry.source, entry.amount) == (sponsor, "CREDIT_PURCHASE", worth)
    assert (balance_of(sponsor), payer.balance) == (worth, 0)
    assert not ExperienceEntry.objects.exists()
    (payout,) = payer.purchases
    assert (payout.user, payout.sponsor_id) == (payer.user, sponsor.pk)
    assert_no_findings(fake)


def test_a_key_names_one_purchase_of_one_beneficiary(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, pack: CreditPack
) -> None:
    key = secrets.token_hex(8)
    buy_for(sponsor, payer, pack, key)
    rows = list(CreditEntry.objects.values())
    with pytest.raises(PurchaseDiffers):
        buy(payer, pack, key)
    with pytest.raises(PurchaseDiffers):
        buy_for(make_sponsor(0), payer, pack, key)
    assert list(CreditEntry.objects.values()) == rows
    assert Purchase.objects.count() == 1


def test_returned_money_takes_the_sponsors_credits_and_reinstated_money_returns_them(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, pack: CreditPack
) -> None:
    buy_for(sponsor, payer, pack)
    (payout,) = payer.purchases
    half = pack.amount_minor // 2
    fake.refund(payout.stripe_payment_intent_id, half)
    process_events(fake.events, now=fake.now())
    taken = payout.credits * half // pack.amount_minor
    assert (balance_of(sponsor), payer.balance) == (payout.credits - taken, 0)
    dispute = fake.dispute(payout.stripe_payment_intent_id)
    process_events(fake.events, now=fake.now())
    assert balance_of(sponsor) == 0
    fake.reinstate(dispute)
    process_events(fake.events, now=fake.now())
    assert balance_of(sponsor) == payout.credits - taken
    assert {row.entry.account.sponsor for row in Clawback.objects.all() if row.entry} == {sponsor}
    assert not CreditEntry.objects.filter(account__user=payer.user).exists()
    assert_no_findings(fake)


def test_a_refund_of_used_credits_leaves_the_sponsor_below_zero_and_staff_see_it_before(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, pack: CreditPack
) -> None:
    buy_for(sponsor, payer, pack)
    (payout,) = payer.purchases
    tamper("UPDATE credits_account SET held = %s WHERE sponsor_id = %s", payout.credits, sponsor.pk)
    preview = refunds.preview_of(payout=payout, amount_minor=None, now=fake.now())
    assert (preview.available, preview.debt_limit) == (0, 0)
    assert (preview.credits, preview.owed_after) == (payout.credits, payout.credits)


def test_the_credits_stay_when_the_payer_leaves(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, pack: CreditPack
) -> None:
    buy_for(sponsor, payer, pack)
    (payout,) = payer.purchases
    deletion.leave_stripe(payer.user, fake.now())
    deletion.erase(payer.user)
    process_events(fake.events, now=fake.now())
    assert balance_of(sponsor) == payout.credits


def test_credits_on_another_account_than_the_sponsors_are_a_finding(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, pack: CreditPack
) -> None:
    other = make_sponsor(0)
    buy_for(sponsor, payer, pack)
    tamper("UPDATE payments_purchase SET sponsor_id = %s", other.pk)
    [finding] = findings(fake)
    assert finding["have"].endswith(f"of sponsor {sponsor.pk}")
    assert finding["wanted"].endswith(f"of sponsor {other.pk}")
