"""Credits that a person transfers to a sponsor: paid ones, once, within a day's ceiling; clawbacks follow them."""

import random
import secrets
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from credits.models import CreditAccount, CreditEntry
from credits.queries import HAS_EARNED
from credits.services import entries
from credits.services.reconciliation import find_differences
from gateway.common import clock, db
from gateway.common.errors import DomainError
from gateway.staff import approvals
from gateway.staff.approval_kinds import RequestOutdated
from payments.models import Clawback, Payout
from payments.services import refunds
from sponsors.errors import PaymentWarned, TransferDiffers, TransferRefused, TransferWaits
from sponsors.models import Sponsor, Transfer, TransferredLot
from sponsors.services import transfers
from tests.credits.holding import place_hold
from tests.database import tamper
from tests.factories import UserFactory
from tests.fakes.billing import FakeBilling
from tests.payments.buying import buy
from tests.payments.payers import Payer
from tests.payments.reconciling import assert_no_findings, findings
from tests.payments.rows import all_rows
from tests.payments.webhook_events import process_events
from tests.sponsors.sponsorships import make_sponsor
from tests.staff import member
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def payer(fake: FakeBilling, user: User, rates: dict[str, int]) -> Payer:
    return Payer(fake, user).with_card()


@pytest.fixture
def sponsor() -> Sponsor:
    return make_sponsor(0)


@pytest.fixture(autouse=True)
def _high_ceiling(settings: Any) -> None:
    settings.SPONSOR_TRANSFER_PER_DAY = 10**12


def bought(payer: Payer, fake: FakeBilling, amount: int | None = None) -> Payout:
    """Return the payout of a new purchase."""
    buy(payer, amount or random.randint(1_000, 5_000))
    process_events(fake.events, now=fake.now())
    return payer.purchases[-1]


def transfer(payer: Payer, sponsor: Sponsor, credits: int, key: str = "") -> Transfer:
    return transfers.start(
        sponsor=sponsor, user=payer.user, credits=credits, key=key or secrets.token_hex(8), now=clock.now()
    )


def give(payer: Payer, credits: int, source: str = "SURVEYS") -> None:
    entries.grant(user=payer.user, credits=credits, source=source, key=secrets.token_hex(8))


def balance_of(sponsor: Sponsor) -> int:
    return CreditAccount.objects.get(sponsor=sponsor).balance


def assert_refused(payer: Payer, sponsor: Sponsor, credits: int, *, available: int) -> None:
    """See a transfer refused, and nothing else happen."""
    rows = (all_rows(), list(CreditAccount.objects.order_by("pk").values()))
    with pytest.raises(TransferRefused) as refused:
        transfer(payer, sponsor, credits)
    assert refused.value.members == {"required": credits, "available": available}
    assert (all_rows(), list(CreditAccount.objects.order_by("pk").values())) == rows
    assert not Transfer.objects.filter(credits=credits).exists()


def test_paid_credits_move_by_a_pair_of_entries_for_each_payment_and_no_others_do(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor
) -> None:
    given = {source: random.randint(1, 900) for source in ("SURVEYS", "CHECK_IN", "CREDITS_BACK")}
    for source, amount in given.items():
        give(payer, amount, source)
    first, second = bought(payer, fake), bought(payer, fake)
    paid = first.credits + second.credits
    assert_refused(payer, sponsor, paid + 1, available=paid)
    moved = first.credits + random.randint(1, second.credits)

    row = transfer(payer, sponsor, moved)

    assert (row.status, row.credits) == ("moved", moved)
    assert (balance_of(sponsor), payer.balance) == (moved, sum(given.values()) + paid - moved)
    lots = list(
        TransferredLot.objects.order_by("pk").select_related("in_entry__account", "out_entry__account")
    )
    assert [(lot.lot_id, lot.credits) for lot in lots] == [
        (first.entry_id, first.credits),
        (second.entry_id, moved - first.credits),
    ]
    for lot in lots:
        assert (lot.out_entry.account.user, lot.out_entry.amount) == (payer.user, -lot.credits)
        assert (lot.in_entry.account.sponsor, lot.in_entry.amount) == (sponsor, lot.credits)
    assert_refused(payer, sponsor, paid - moved + 1, available=paid - moved)
    assert_no_findings(fake)


def test_held_credits_and_those_of_a_returned_payment_stay_and_debt_moves_nothing(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor
) -> None:
    first, second = bought(payer, fake), bought(payer, fake)
    fake.refund(first.stripe_payment_intent_id, 10)
    process_events(fake.events, now=fake.now())
    left, held = payer.balance, random.randint(1, 1_000)
    assert_refused(payer, sponsor, left, available=second.credits)
    place_hold(user=payer.user, credits=left - second.credits + held, key=secrets.token_hex(8))
    assert_refused(payer, sponsor, second.credits, available=second.credits - held)
    transfer(payer, sponsor, second.credits - held)
    tamper("UPDATE credits_account SET held = 0, open_holds = 0 WHERE user_id = %s", payer.user.pk)
    tamper("DELETE FROM credits_hold")
    entries.adjust(
        user=payer.user, credits=-payer.balance - 5, key=secrets.token_hex(8), actor=None, reason="a test"
    )
    assert_refused(payer, sponsor, 1, available=0)


def test_credits_of_a_payment_that_a_card_network_warns_of_stay_and_the_refusal_says_so(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, settings: Any
) -> None:
    warned, other = bought(payer, fake), bought(payer, fake)
    settings.SPONSOR_TRANSFER_PER_DAY = 0
    waiting = transfer(payer, sponsor, other.credits + 1)
    settings.SPONSOR_TRANSFER_PER_DAY = 10**12
    Payout.objects.filter(pk=warned.pk).update(fraud_warned_at=fake.now())
    rows = (all_rows(), list(Transfer.objects.values()))
    with pytest.raises(PaymentWarned) as refused:
        transfer(payer, sponsor, other.credits + 1)
    assert refused.value.members == {
        "required": other.credits + 1,
        "available": other.credits,
        "warned": warned.credits,
    }
    approval = transfers.request(
        transfer=waiting, actor=member("support"), reason="known", key=secrets.token_hex(8)
    )
    with pytest.raises(PaymentWarned):
        approvals.approve(request_id=approval.pk, actor=member("finance"), reason="checked")
    assert (all_rows(), list(Transfer.objects.values())) == rows
    assert_refused(payer, sponsor, warned.credits + other.credits + 1, available=other.credits)
    transfer(payer, sponsor, other.credits)
    [lot] = TransferredLot.objects.all()
    assert (lot.lot_id, lot.credits) == (other.entry_id, other.credits)
    assert_no_findings(fake)


def test_a_repeated_key_answers_with_the_first_transfer_and_another_order_is_a_conflict(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor
) -> None:
    moved, key = bought(payer, fake).credits // 3, secrets.token_hex(8)
    first = transfer(payer, sponsor, moved, key)
    assert transfer(payer, sponsor, moved, key) == first
    for to, amount in ((sponsor, moved + 1), (make_sponsor(0), moved)):
        with pytest.raises(TransferDiffers):
            transfer(payer, to, amount, key)
    assert (balance_of(sponsor), Transfer.objects.count()) == (moved, 1)


def test_a_refund_takes_what_was_transferred_from_the_sponsor_and_the_rest_from_the_person(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor
) -> None:
    payout, other = bought(payer, fake), make_sponsor(0)
    part = payout.credits // 3
    transfer(payer, sponsor, part)
    transfer(payer, other, part)
    kept = payout.credits - 2 * part
    # A half takes all of the newer transfer, and some of the older one.
    fake.refund(payout.stripe_payment_intent_id, payout.charged_minor // 2)
    process_events(fake.events, now=fake.now())
    taken = payout.credits * (payout.charged_minor // 2) // payout.charged_minor
    assert (balance_of(other), balance_of(sponsor), payer.balance) == (0, 2 * part - taken, kept)
    fake.refund(payout.stripe_payment_intent_id, payout.charged_minor - payout.charged_minor // 2)
    process_events(fake.events, now=fake.now())
    assert (balance_of(other), balance_of(sponsor), payer.balance) == (0, 0, 0)
    assert set(TransferredLot.objects.values_list("clawed_back", "credits")) == {(part, part)}
    assert_no_findings(fake)


def test_a_dispute_that_is_won_gives_back_to_each_what_was_taken(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor
) -> None:
    payout = bought(payer, fake)
    back = payout.charged_minor // 5
    fake.refund(payout.stripe_payment_intent_id, back)
    process_events(fake.events, now=fake.now())
    # Of a payment of which something was returned, nothing is transferred; so the refund of another one comes later.
    second = bought(payer, fake)
    moved = random.randint(1, second.credits)
    transfer(payer, sponsor, moved)
    before = (balance_of(sponsor), payer.balance)
    dispute = fake.dispute(second.stripe_payment_intent_id)
    process_events(fake.events, now=fake.now())
    assert (balance_of(sponsor), payer.balance) == (0, before[1] - (second.credits - moved))
    fake.reinstate(dispute)
    process_events(fake.events, now=fake.now())
    assert (balance_of(sponsor), payer.balance) == before
    assert set(TransferredLot.objects.values_list("clawed_back", flat=True)) == {0}
    assert Clawback.objects.filter(payout=second).count() == (4 if moved < second.credits else 2)
    assert_no_findings(fake)


def test_a_clawback_leaves_a_sponsor_below_zero_that_has_used_the_credits_and_staff_see_it_before(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor
) -> None:
    payout = bought(payer, fake)
    moved, used = payout.credits // 2, random.randint(1, payout.credits // 2)
    transfer(payer, sponsor, moved)
    entries.adjust_sponsor(
        sponsor_id=sponsor.pk, credits=-used, key=secrets.token_hex(8), actor=None, reason="a test"
    )
    preview = refunds.preview_of(payout=payout, amount_minor=None, now=fake.now())
    assert (preview.credits, preview.from_sponsors, preview.available_after) == (payout.credits, moved, 0)
    fake.dispute(payout.stripe_payment_intent_id)
    process_events(fake.events, now=fake.now())
    assert (balance_of(sponsor), payer.balance) == (-used, 0)


def test_more_than_was_moved_is_never_clawed_back(fake: FakeBilling, payer: Payer, sponsor: Sponsor) -> None:
    transfer(payer, sponsor, bought(payer, fake).credits)
    [lot] = TransferredLot.objects.all()
    for change in (lot.credits + 1, -1):
        with pytest.raises(IntegrityError), transaction.atomic():
            transfers.count_clawback(lot=lot.pk, credits=change)


def test_transferred_credits_prove_no_payment_of_the_person(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor
) -> None:
    def has_earned() -> bool:
        return bool(db.only_row(HAS_EARNED, {"user": payer.user.pk})[0])

    payout = bought(payer, fake)
    assert has_earned()
    transfer(payer, sponsor, payout.credits)
    assert not has_earned()


def test_what_exceeds_the_day_waits_for_two_members_of_staff(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, settings: Any
) -> None:
    paid = bought(payer, fake).credits
    settings.SPONSOR_TRANSFER_PER_DAY = day = random.randint(1, paid // 2 - 1)
    transfer(payer, sponsor, day)
    waiting = transfer(payer, sponsor, paid - day)
    assert (waiting.status, balance_of(sponsor), payer.balance) == ("waiting", day, paid - day)
    with pytest.raises(TransferWaits):
        transfer(payer, sponsor, 1)
    approval = transfers.request(
        transfer=waiting, actor=member("support"), reason="known", key=secrets.token_hex(8)
    )
    assert (approval.status, balance_of(sponsor)) == ("waiting", day)
    approvals.approve(request_id=approval.pk, actor=member("finance"), reason="checked")
    waiting.refresh_from_db()
    assert (waiting.status, balance_of(sponsor), payer.balance) == ("moved", paid, 0)
    with pytest.raises(RequestOutdated):
        transfers.refuse(waiting, now=clock.now())
    assert_no_findings(fake)


def test_an_approval_moves_nothing_that_was_used_or_refused_meanwhile(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, settings: Any
) -> None:
    paid, settings.SPONSOR_TRANSFER_PER_DAY = bought(payer, fake).credits, 0
    waiting = transfer(payer, sponsor, paid)
    approval = transfers.request(
        transfer=waiting, actor=member("support"), reason="known", key=secrets.token_hex(8)
    )
    place_hold(user=payer.user, credits=1, key=secrets.token_hex(8))
    for error in (TransferRefused, RequestOutdated):
        with pytest.raises(error):
            approvals.approve(request_id=approval.pk, actor=member("finance"), reason="checked")
        if error is TransferRefused:
            transfers.refuse(waiting, now=clock.now())
    assert (balance_of(sponsor), payer.balance, TransferredLot.objects.count()) == (0, paid, 0)


def test_a_ceiling_counts_each_utc_day_of_the_person_and_of_the_sponsor(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, settings: Any
) -> None:
    paid = bought(payer, fake).credits
    settings.SPONSOR_TRANSFER_PER_DAY = day = paid // 4
    transfer(payer, sponsor, day)
    assert transfer(payer, make_sponsor(0), 1).status == "waiting"
    other = Payer(fake, UserFactory.create())
    give(other, 1, "CREDIT_PURCHASE")
    assert transfer(other, sponsor, 1).status == "waiting"
    Transfer.objects.filter(status="moved").update(ended_at=clock.now() - timedelta(days=1))
    assert transfer(payer, sponsor, day).status == "moved"


def test_a_person_who_leaves_stays_in_no_row_of_transfers(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, settings: Any
) -> None:
    paid = bought(payer, fake).credits
    transfer(payer, sponsor, paid // 2)
    settings.SPONSOR_TRANSFER_PER_DAY = 0
    transfer(payer, sponsor, 1)
    transfers.forget(payer.user)
    assert Counter(Transfer.objects.values_list("status", "idempotency_key")) == {
        ("moved", ""): 1,
        ("refused", ""): 1,
    }


def test_reconciling_finds_a_transfer_that_differs_from_its_entries(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor
) -> None:
    row = transfer(payer, sponsor, bought(payer, fake).credits)
    assert_no_findings(fake)
    [lot], _ = TransferredLot.objects.all(), make_sponsor(0)
    person, of_sponsor = (
        "an entry of a transfer moves a lot from its person to its sponsor",
        "a transfer moves the credits of its lots",
    )
    for change, rules in (
        ("UPDATE sponsors_transfer SET credits = credits + 1", [of_sponsor]),
        ("UPDATE sponsors_transferredlot SET credits = credits + 1", [person, of_sponsor, person]),
        ("UPDATE sponsors_transfer SET sponsor_id = (SELECT max(id) FROM sponsors_sponsor)", [person]),
    ):
        with transaction.atomic():
            tamper(change)
            assert sorted(finding.rule for finding in find_differences()) == sorted(rules)
            transaction.set_rollback(True)
    TransferredLot.objects.update(clawed_back=1)
    [finding] = findings(fake)
    assert finding["ids"] == {"transferred lot": str(lot.pk), "transfer": str(row.pk)}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("bound", ["credits", "person", "sponsor"])
def test_many_transfers_at_once_pass_neither_the_last_credit_nor_a_ceiling(
    fake: FakeBilling, payer: Payer, sponsor: Sponsor, settings: Any, bound: str
) -> None:
    paid = bought(payer, fake).credits
    part = random.randint(paid // 20, paid // 10)
    if bound == "credits":
        to = [sponsor] * 24
    else:
        settings.SPONSOR_TRANSFER_PER_DAY = random.randint(2 * part, 5 * part)
        to = [sponsor] * 24 if bound == "sponsor" else [make_sponsor(0) for _ in range(24)]
    calls: list[Callable[[], Transfer]] = [partial(transfer, payer, one, part) for one in to]
    answers = at_once(calls)
    most = min(paid, settings.SPONSOR_TRANSFER_PER_DAY) // part
    moved = [row for row in answers if isinstance(row, Transfer) and row.status == "moved"]
    refused = {type(row) for row in answers if isinstance(row, DomainError)}
    assert len(moved) == most
    assert refused == {"credits": {TransferRefused}, "person": set(), "sponsor": {TransferWaits}}[bound]
    assert payer.balance == paid - most * part
    assert CreditEntry.objects.filter(source="TRANSFER_IN").count() == most
    assert_no_findings(fake)
