"""Lists and rows show values as people read them."""

import re
from decimal import Decimal

import pytest
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from checkin.models import CheckIn
from credits.models import CreditEntry, CreditHold
from earnings.models import Postback
from gateway.admin import columns
from gateway.chain.config import get_chain
from payments.models import Payout, PayoutRate
from relay.models import Attempt, RelayTransaction
from rewards.models import Badge, Modifier
from tests.database import rewrite
from tests.factories import make
from tests.staff import log_in_staff
from users.models import User


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (columns.number(1_234_567), "1,234,567"),
        (columns.number(Decimal("1500.2500")), "1,500.25"),
        (columns.number(Decimal(100)), "100"),
        (columns.percent(Decimal("0.1500")), "+15 %"),
        (columns.percent(Decimal("0.0050")), "+0.5 %"),
        (columns.money(2550, "usd"), "25.50 USD"),
        (columns.wei(1_500_000_000, is_price=True), "1.5 gwei"),
        (columns.short("0x2bfDBF5a411826eBdfD4B2164cebB0996e66a97e"), "0x2bfDBF…66a97e"),
        (columns.badge("HELD"), "Held"),
        (columns.word_of("WAITS", "waits for Stripe"), "Waits for Stripe"),
        (columns.word_of("LATE_PAYER", "Late Payer"), "Late payer"),
        (columns.long_number(2**127), "17014118…105728"),
        (columns.long_number(75), "75"),
        (columns.structure({}), "-"),
        (columns.number(None), "-"),
    ],
)
def test_a_value_is_shown_with_its_unit_and_separators(shown: str, words: str) -> None:
    assert f">{words}<" in f">{shown}<"


@pytest.mark.parametrize(
    ("model", "name", "pair", "line"),
    [
        (User, "is_active", ("True", "False"), "active: yes → no"),
        (
            Modifier,
            "expires_at",
            ("2026-11-23 04:43:30.123+00:00", "now"),
            "expires at: 2026-11-23 04:43:30 UTC → now",
        ),
        (CreditEntry, "source", ("STAFF_ADJUSTMENT", "SURVEYS"), "source: Adjusted by staff → Surveys"),
        (Badge, "bonus_creds_surveys", ("0.05", "0.1500"), "bonus creds surveys: +5 % → +15 %"),
        (Badge, "name", ("None", "1234567"), "name: 1,234,567"),
        (None, "not_before", ("7", ""), "not before: 7 → nothing"),
    ],
)
def test_a_change_in_the_log_is_described_in_words(
    model: type[Model] | None, name: str, pair: tuple[str, str], line: str
) -> None:
    assert columns.lines(model, {name: pair}) == [line]


def test_a_shortened_value_shows_the_whole_one_as_its_title() -> None:
    address = "0x2bfDBF5a411826eBdfD4B2164cebB0996e66a97e"

    assert f'title="{address}"' in columns.short(address)
    assert 'title="1,000,000,000,000,000,000 wei"' in columns.wei(10**18)


@pytest.mark.django_db
def test_a_failed_call_shows_its_cause_and_is_found_by_it(client: Client) -> None:
    log_in_staff(client)
    refused, other = make(RelayTransaction), make(RelayTransaction)
    codes = ("profile-balance-too-low", "reverted")
    for call, code in zip((refused, other), codes, strict=True):
        RelayTransaction.objects.filter(pk=call.pk).update(
            status="Failed", failure_code=code, settled_at=timezone.now()
        )
    page = reverse("admin:relay_relaytransaction_changelist")

    body = client.get(page, {"failure_code__exact": codes[0]}).content.decode()

    assert "The profile has too little LYX" in body
    assert '<span class="tone bad">Failed</span>' in body
    assert refused.transaction_hash in body
    assert other.transaction_hash not in body


@pytest.mark.django_db
def test_a_row_shows_money_and_gas_in_readable_units(client: Client) -> None:
    log_in_staff(client)
    payout, attempt = make(Payout), make(Attempt)
    rewrite(Payout.objects.filter(pk=payout.pk), amount_minor=123_456, currency="chf")
    Attempt.objects.filter(pk=attempt.pk).update(effective_gas_price_wei=2_500_000_000)

    pages = (
        reverse("admin:payments_payout_changelist"),
        reverse("admin:payments_payout_change", args=[payout.pk]),
    )
    assert all("1,234.56 CHF" in client.get(page).content.decode() for page in pages)
    row = client.get(reverse("admin:relay_attempt_change", args=[attempt.pk])).content.decode()
    assert "2.5 gwei" in row


@pytest.mark.django_db
def test_a_flag_that_is_not_set_is_shown_as_a_word_and_not_as_a_fault(client: Client) -> None:
    row = make(Postback)
    Postback.objects.filter(pk=row.pk).update(is_conflicting=False, conflicted_at=None)
    log_in_staff(client)
    for page in ("changelist", "change"):
        url = reverse(f"admin:earnings_postback_{page}", args=[row.pk] if page == "change" else [])
        shown = re.sub(r"\s+", " ", client.get(url).content.decode())
        assert re.search(r'(class="field-is_conflicting"|Is conflicting</label>.{0,200}?)>no<', shown)
        assert "icon-no" not in shown


@pytest.mark.django_db
def test_codes_of_the_rows_are_shown_in_words(client: Client) -> None:
    log_in_staff(client)
    call, hold, check_in, rate = make(RelayTransaction), make(CreditHold), make(CheckIn), make(PayoutRate)
    nonce = 2**127 + 75
    RelayTransaction.objects.filter(pk=call.pk).update(
        channel=nonce >> 64,
        relay_nonce=nonce,
        status="Failed",
        failure_code="reverted",
        settled_at=timezone.now(),
    )
    rewrite(PayoutRate.objects.filter(pk=rate.pk), currency="chf")
    rewrite(
        CheckIn.objects.filter(pk=check_in.pk),
        possible_results=[{"type": "BONUS_OFFERWALL_CREDITS", "value": "5", "minutes": 7}],
    )
    for row, words, codes in (
        (
            call,
            ("Reverted without a reason", get_chain().name, str(nonce)[:8]),
            (str(nonce), str(call.chain_id)),
        ),
        (hold, ("Held",), ("HELD",)),
        (check_in, ("Bonus on offers: 5 for 7 min",), ()),
        (rate, ("CHF",), ("chf",)),
    ):
        model = row._meta.model_name
        page = client.get(
            reverse(f"admin:{row._meta.app_label}_{model}_change", args=[row.pk])
        ).content.decode()
        shown = strip_tags(page.split('id="content"', 1)[1].split("<script")[0])
        assert [word for word in words if word not in shown] == []
        assert [code for code in codes if code in shown.split()] == []
