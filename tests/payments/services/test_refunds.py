"""Refunds of staff: shown first, approved, made once at Stripe, and followed by the credits that were shown."""

import random
import re
import secrets
from typing import Any

import pytest
from pytest_django import Settings

from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import entries
from credits.services.reconciliation import find_differences
from gateway.staff import approvals
from gateway.staff.approval_kinds import RequestOutdated
from gateway.staff.models import ApprovalRequest
from payments.errors import BillingRefused, BillingUnavailable, NotRefundable
from payments.models import Clawback, Refund
from payments.queries import payment_counts
from payments.services import events, refunds
from payments.services.reconciliation import ledger
from payments.services.reconciliation.findings import Finding
from tests.fakes.billing import FakeBilling
from tests.payments.buying import buy, new_pack
from tests.payments.payers import Payer
from tests.payments.webhook_events import receive_event
from tests.staff import address_of, browser_of, confirm, everything, member, messages_of
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def payer(fake: FakeBilling, user: User, amount: int) -> Payer:
    """Return a subscriber whose first month is paid out."""
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    process(fake)
    return payer


@pytest.fixture(autouse=True)
def limit(settings: Settings, amount: int) -> int:
    """Return what a clerk may refund alone: just the whole payment."""
    limits = {"actor": amount, "person": amount, "day": amount, "ceiling": amount, "ceiling_day": amount}
    settings.APPROVAL_LIMITS = {**settings.APPROVAL_LIMITS, "refunds": limits}
    return amount


def process(fake: FakeBilling) -> None:
    for event in fake.events:
        events.process(event_id=receive_event(event, now=fake.now()).pk, now=fake.now())


def preview(fake: FakeBilling, payer: Payer, amount: int | None = None) -> refunds.Preview:
    return refunds.preview_of(payout=payer.payout, amount_minor=amount, now=fake.now())


def ask(shown: refunds.Preview, actor: User | None = None) -> ApprovalRequest:
    actor = actor or member("support")
    return refunds.request(preview=shown, actor=actor, reason="unhappy", key=secrets.token_hex(8))


def send(fake: FakeBilling, refund: Refund) -> Refund:
    return refunds.send(refund_id=str(refund.pk), now=fake.now())


@pytest.mark.parametrize("is_spent", [False, True])
def test_the_previewed_effect_happens_once_stripe_reports_the_refund(
    fake: FakeBilling, payer: Payer, amount: int, is_spent: bool
) -> None:
    gave = payer.payout.credits
    spent = random.randint(1, gave) if is_spent else 0
    if spent:
        entries.reverse(
            user=payer.user, credits=spent, source=EntrySource.EARNING_REVERSAL, key="spent", reason="spent"
        )
    for part in (random.randint(1, amount - 1), None):
        shown = preview(fake, payer, part)
        assert shown.available == balance_of(payer.user).available
        before = everything()
        assert ask(shown).status == "done"
        refund = Refund.objects.get(status="pending")
        assert {name for name, rows in everything().items() if rows != before[name]} == {
            "gateway_admin_approvalrequest",
            "gateway_admin_approvalpool",
            "payments_refund",
        } & before.keys()
        assert send(fake, refund).status == send(fake, refund).status == "done"
        process(fake)
        assert balance_of(payer.user).available == shown.available_after
        assert Clawback.objects.latest("pk").credits == shown.credits
    assert (payer.payout.charged_minor - shown.returned_minor, shown.ends_allowance) == (
        shown.amount_minor,
        True,
    )
    assert (balance_of(payer.user).available, shown.owed_after) == (-spent, spent)
    assert fake.calls["create_refund"] == 2
    assert find_differences() == []
    with pytest.raises(NotRefundable, match="All of this payment has been returned"):
        preview(fake, payer)


@pytest.mark.parametrize("amount_minor", [0, -1, 10**9])
def test_no_refund_of_nothing_or_more_than_the_payment_is_offered(
    fake: FakeBilling, payer: Payer, amount_minor: int
) -> None:
    with pytest.raises(NotRefundable):
        preview(fake, payer, amount_minor)


def test_above_the_limit_the_refund_is_sent_only_after_approval_of_another_role(
    fake: FakeBilling, payer: Payer, amount: int, settings: Settings
) -> None:
    settings.APPROVAL_LIMITS["refunds"]["actor"] = amount - 1
    request = ask(preview(fake, payer))
    assert (request.status, Refund.objects.count(), refunds.send_pending(now=fake.now())) == ("waiting", 0, 0)
    assert "refund" not in "".join(event.decode() for event in fake.events)
    approvals.approve(request_id=request.pk, actor=member("finance"), reason="agreed")
    assert refunds.send_pending(now=fake.now()) == 1
    assert (fake.refunded(payer.payout.stripe_payment_intent_id), payment_counts().pending_operations) == (
        amount,
        0,
    )


def test_a_request_is_refused_after_a_concurrent_refund(
    fake: FakeBilling, payer: Payer, amount: int, settings: Settings
) -> None:
    settings.APPROVAL_LIMITS["refunds"]["actor"] = amount - 1
    request = ask(preview(fake, payer))
    fake.refund(payer.payout.stripe_payment_intent_id, amount // 2)
    process(fake)
    before = everything()
    with pytest.raises(RequestOutdated):
        approvals.approve(request_id=request.pk, actor=member("finance"), reason="agreed")
    assert everything() == before


def test_a_second_refund_of_a_payment_is_refused_while_the_first_waits_for_stripe(
    fake: FakeBilling, payer: Payer, amount: int
) -> None:
    first, second = preview(fake, payer, 1), preview(fake, payer, 1)
    ask(first)
    before = everything()
    with pytest.raises(RequestOutdated):
        ask(second)
    assert everything() == before


def test_while_stripe_is_away_the_refund_waits_and_is_then_made_once(
    fake: FakeBilling, payer: Payer, amount: int
) -> None:
    ask(preview(fake, payer))
    refund, balance = Refund.objects.get(), balance_of(payer.user)
    with fake.away():
        with pytest.raises(BillingUnavailable):
            preview(fake, payer)
        with pytest.raises(BillingUnavailable):
            send(fake, refund)
        assert refunds.send_pending(now=fake.now()) == 0
    refund.refresh_from_db()
    assert (refund.status, refund.attempts, refund.finished_at) == ("pending", 2, None)
    assert "Stripe does not respond" in refund.last_error
    assert (balance_of(payer.user), payment_counts().pending_operations) == (balance, 1)
    assert [refunds.send_pending(now=fake.now()) for _ in range(2)] == [1, 0]
    refund.refresh_from_db()
    assert (refund.status, refund.last_error) == ("done", "")
    assert fake.refunded(payer.payout.stripe_payment_intent_id) == amount


def test_a_refund_refused_by_stripe_is_closed_and_moves_nothing(
    fake: FakeBilling, payer: Payer, amount: int
) -> None:
    ask(preview(fake, payer))
    fake.refund(payer.payout.stripe_payment_intent_id, 1)
    refund, balance = Refund.objects.get(), balance_of(payer.user)
    with pytest.raises(BillingRefused):
        send(fake, refund)
    refund.refresh_from_db()
    assert (refund.status, refund.outcome) == ("refused", "charge_already_refunded")
    assert (balance_of(payer.user), fake.refunded(payer.payout.stripe_payment_intent_id)) == (balance, 1)
    assert refunds.send_pending(now=fake.now()) == 0
    process(fake)
    assert preview(fake, payer).amount_minor == amount - 1


def test_support_previews_the_clawback_and_sends_exactly_that_refund(
    fake: FakeBilling, payer: Payer, amount: int
) -> None:
    url = f"/admin/payments/payout/{payer.payout.pk}/refund/"
    before = everything()
    for role in ("finance", "operations"):
        assert browser_of(member(role)).get(url).status_code == 403
        assert browser_of(member(role)).post(url, {"reason": "x"}).status_code == 403
    clerk = browser_of(member("support"))
    assert url in clerk.get(f"/admin/payments/payout/{payer.payout.pk}/change/").content.decode()
    page = clerk.get(url, {"amount": "0.01"})
    shown = page.context["preview"]
    assert shown.amount_minor == 1
    sent = {**page.context["form"].initial, "reason": "unhappy with it"}
    assert clerk.post(url, {**sent, "reason": " "}).context["form"].errors.keys() == {"reason"}
    # The figures changed after the preview: it would take back another amount than shown.
    other = clerk.post(url, {**sent, "amount_minor": amount})
    assert "the credits to take back have changed" in messages_of(other)
    assert everything() == before

    response = clerk.post(url, sent, follow=True)
    assert "is being refunded by Stripe" in messages_of(response)
    refund = Refund.objects.get()
    assert response.redirect_chain[-1][0] == f"/admin/payments/refund/{refund.pk}/change/"
    assert refund.amount_minor == 1
    after = everything()
    clerk.post(url, sent)
    assert everything() == after  # the page sent twice asks once

    with fake.away():
        messages = messages_of(confirm(clerk, "payments_refund", "send", refund))
        assert "Stripe does not respond" in messages
        assert "Nothing was done" in clerk.get(url).context["refusal"]
    assert "Stripe's response: refunded (re_" in messages_of(
        confirm(clerk, "payments_refund", "send", refund)
    )
    assert clerk.get(address_of("payments_refund", "send", refund)).context["effects"] == []


def test_support_refunds_the_payment_chosen_on_the_users_page(
    fake: FakeBilling, payer: Payer, amount: int
) -> None:
    for _ in range(2):
        buy(payer, new_pack(amount=random.randint(100, amount)))
    process(fake)
    person = f"/admin/users/user/{payer.user.pk}/change/"
    chosen, other = payer.purchases
    balance = balance_of(payer.user).available
    clerk = browser_of(member("support"))
    assert _refundable(clerk.get(person)) == [other.pk, chosen.pk, payer.payout.pk]
    assert _refundable(browser_of(member("finance")).get(person)) == []
    assert f"pack {chosen.purchase.pack}" in clerk.get(person).content.decode()  # type: ignore[union-attr]

    page = clerk.get(f"/admin/payments/payout/{chosen.pk}/refund/")
    assert not page.context["preview"].ends_allowance
    clerk.post(page.request["PATH_INFO"], {**page.context["form"].initial, "reason": "not what I wanted"})
    send(fake, Refund.objects.get())
    process(fake)

    returned = {row.pk: fake.refunded(row.stripe_payment_intent_id) for row in (payer.payout, chosen, other)}
    assert returned == {payer.payout.pk: 0, chosen.pk: chosen.charged_minor, other.pk: 0}
    assert Clawback.objects.get().payout == chosen
    assert balance_of(payer.user).available == balance - chosen.credits
    assert _refundable(clerk.get(person)) == [other.pk, payer.payout.pk]


def _refundable(page: Any) -> list[int]:
    """Return the payments that the page offers to refund, in its order."""
    return [int(pk) for pk in re.findall(r"/admin/payments/payout/(\d+)/refund/", page.content.decode())]


def test_a_refund_that_the_bank_returns_is_a_finding_until_the_money_is_returned_in_another_way(
    fake: FakeBilling, payer: Payer, amount: int
) -> None:
    ask(preview(fake, payer))
    refund = send(fake, Refund.objects.get())
    process(fake)
    taken = payer.payout.credits_taken_back()
    assert (refund.status, taken) == ("done", payer.payout.credits)
    assert _failed_refunds() == []

    fake.fail_refund(refund.outcome)
    process(fake)

    refund.refresh_from_db()
    assert (refund.status, refund.last_error) == ("failed", f"{refund.outcome}: lost_or_stolen_card")
    assert payer.payout.credits_taken_back() == 0
    (finding,) = _failed_refunds()
    assert finding.ids == {"refund": str(refund.pk), "user": str(payer.user.pk)}
    fake.pass_time(1)
    fake.refund(payer.payout.stripe_payment_intent_id, amount)
    process(fake)
    refund.refresh_from_db()
    assert (refund.status, _failed_refunds()) == ("failed", [])
    assert payer.payout.credits_taken_back() == taken


def _failed_refunds() -> list[Finding]:
    return list(ledger._failed_refunds())
