"""Actions of staff and banks: disputes, refunds, credit notes, declined cards."""

import secrets
from collections.abc import Callable
from typing import Any

import pytest
import stripe

from accounts import DAY, HOUR, DoubleAccount
from openapi import response_checks
from stripe_double.client import ControlClient, ControlError
from webhook_receiver import WebhookReceiver


def pay_first_invoice(
    account: DoubleAccount, amount: int, card: str = "pm_card_visa"
) -> tuple[stripe.Subscription, str]:
    """Return a paid subscription and the payment intent of its first invoice."""
    subscription = account.subscribe(account.create_paying_customer(card), amount)
    return subscription, account.payment_intent_of(subscription)


def test_a_card_can_be_declined_for_a_while(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    subscription, _ = pay_first_invoice(account, amount)
    card = account.v1.payment_methods.list({"customer": str(subscription.customer)}).data[0].id
    controls.change_card(card, decline_code="insufficient_funds")
    controls.advance_to(subscription["items"].data[0].current_period_end + 2 * HOUR)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "past_due"
    controls.change_card(card, decline_code=None)
    controls.advance(4 * DAY)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "active"
    assert account.invoices(subscription)[1].attempt_count == 2


@pytest.mark.parametrize(
    ("outcome", "status"), [("cancel", "canceled"), ("unpaid", "unpaid"), ("leave", "past_due")]
)
def test_the_settings_decide_what_follows_the_last_retry(
    outcome: str, status: str, account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    controls.after_retries(outcome)
    subscription, _ = pay_first_invoice(account, amount)
    card = account.v1.payment_methods.list({"customer": str(subscription.customer)}).data[0].id
    controls.change_card(card, decline_code="lost_card")
    end = subscription["items"].data[0].current_period_end
    controls.advance_to(end + 14 * DAY)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "past_due"
    controls.advance_to(end + 17 * DAY)
    updated = account.v1.subscriptions.retrieve(subscription.id)
    assert updated.status == status
    assert account.invoices(subscription)[1].attempt_count == 4
    if outcome == "cancel":
        assert updated.cancellation_details is not None
        assert updated.cancellation_details.reason == "payment_failed"


def test_a_dispute_withdraws_the_funds_and_a_won_one_reinstates_them(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    _, intent = pay_first_invoice(account, amount)
    dispute = controls.open_dispute(intent)
    opened = account.v1.disputes.retrieve(dispute["id"], {"expand": ["charge"]})
    assert (opened.status, opened.amount, opened.payment_intent) == ("needs_response", amount, intent)
    assert isinstance(opened.charge, stripe.Charge)
    assert opened.charge.disputed
    assert [transaction.amount for transaction in opened.balance_transactions] == [-amount]
    controls.close_dispute(dispute["id"], won=True)
    won = account.v1.disputes.retrieve(dispute["id"])
    assert (won.status, [transaction.amount for transaction in won.balance_transactions]) == (
        "won",
        [-amount, amount],
    )
    assert account.event_types("charge.dispute.") == [
        "charge.dispute.created",
        "charge.dispute.funds_withdrawn",
        "charge.dispute.closed",
        "charge.dispute.funds_reinstated",
    ]


def test_the_steps_of_a_dispute_can_be_controlled_one_by_one(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    _, intent = pay_first_invoice(account, amount)
    part = 1 + secrets.randbelow(amount - 1)
    dispute = controls.open_dispute(intent, amount=part, withdraw=False)["id"]
    with pytest.raises(ControlError):
        controls.reinstate_funds(dispute)
    controls.withdraw_funds(dispute)
    controls.reinstate_funds(dispute)
    controls.withdraw_funds(dispute)
    controls.close_dispute(dispute, won=False)
    lost = account.v1.disputes.list({"payment_intent": intent}).data[0]
    assert (lost.status, [transaction.amount for transaction in lost.balance_transactions]) == (
        "lost",
        [-part, part, -part],
    )
    with pytest.raises(ControlError):
        controls.close_dispute(dispute, won=True)


def test_stripes_test_card_opens_a_dispute(account: DoubleAccount, amount: int) -> None:
    _, intent = pay_first_invoice(account, amount, "pm_card_createDispute")
    (dispute,) = account.v1.disputes.list({"payment_intent": intent}).data
    assert (dispute.reason, dispute.status) == ("fraudulent", "needs_response")


def test_a_disputed_charge_is_not_refunded(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    _, intent = pay_first_invoice(account, amount)
    controls.open_dispute(intent)
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.v1.refunds.create({"payment_intent": intent})
    assert raised.value.code == "charge_disputed"


def test_a_refund_at_the_dashboard_can_fail_after_all(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    _, intent = pay_first_invoice(account, amount)
    refund = controls.refund(intent, 100)
    controls.fail_refund(refund["id"])
    failed = account.v1.refunds.retrieve(refund["id"], {"expand": ["charge"]})
    assert (failed.status, failed.failure_reason) == ("failed", "lost_or_stolen_card")
    assert isinstance(failed.charge, stripe.Charge)
    assert failed.charge.amount_refunded == 0
    assert account.event_types("refund.") == ["refund.created", "refund.updated", "refund.failed"]
    events = account.v1.events.list({"types": ["refund.created", "charge.refunded"]}).data
    assert all(event.request is not None and event.request.id is None for event in events)


@pytest.mark.parametrize(
    ("card", "at_once", "later"),
    [("pm_card_pendingRefund", "pending", "succeeded"), ("pm_card_refundFail", "succeeded", "failed")],
)
def test_the_refunds_of_some_cards_settle_later(
    card: str, at_once: str, later: str, account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    _, intent = pay_first_invoice(account, amount, card)
    refund = account.v1.refunds.create({"payment_intent": intent})
    assert refund.status == at_once
    controls.advance(HOUR)
    assert account.v1.refunds.retrieve(refund.id).status == later


def test_an_invoice_paid_by_credit_note_collected_nothing(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    subscription = account.subscribe(account.create_paying_customer("pm_card_chargeCustomerFail"), amount)
    (invoice,) = account.invoices(subscription)
    note = controls.create_credit_note(str(invoice.id))
    credited = account.v1.invoices.retrieve(str(invoice.id))
    assert (credited.status, credited.amount_paid, credited.pre_payment_credit_notes_amount) == (
        "paid",
        0,
        amount,
    )
    assert account.event_types("invoice.p") == ["invoice.payment_failed", "invoice.paid"]
    assert (note["amount"], note["pre_payment_amount"], note["post_payment_amount"]) == (amount, amount, 0)


def test_a_partial_credit_note_lowers_what_is_collected(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    customer = account.create_paying_customer("pm_card_chargeCustomerFail")
    subscription = account.subscribe(customer, amount)
    (invoice,) = account.invoices(subscription)
    controls.create_credit_note(str(invoice.id), 100)
    card = account.v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    settled = account.v1.invoices.pay(str(invoice.id), {"payment_method": card.id})
    assert (settled.total, settled.amount_paid) == (amount, amount - 100)


def test_a_credit_note_after_payment_goes_to_the_balance(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    subscription, _ = pay_first_invoice(account, amount)
    (invoice,) = account.invoices(subscription)
    controls.create_credit_note(str(invoice.id), 200)
    credited = account.v1.invoices.retrieve(str(invoice.id))
    assert (credited.status, credited.amount_paid, credited.post_payment_credit_notes_amount) == (
        "paid",
        amount,
        200,
    )
    assert account.v1.customers.retrieve(str(subscription.customer)).balance == -200
    controls.advance_to(subscription["items"].data[0].current_period_end + 2 * HOUR)
    renewal = account.invoices(subscription)[1]
    assert (renewal.starting_balance, renewal.amount_paid, renewal.ending_balance) == (-200, amount - 200, 0)


def test_a_customer_with_enough_balance_pays_nothing_by_card(account: DoubleAccount) -> None:
    customer = account.create_paying_customer()
    account.v1.customers.update(customer.id, {"balance": -10_000})
    subscription = account.subscribe(customer, 2_550)
    (invoice,) = account.invoices(subscription)
    assert (subscription.status, invoice.total, invoice.amount_paid) == ("active", 2_550, 0)
    assert (invoice.starting_balance, invoice.ending_balance) == (-10_000, -7_450)


def test_an_invoice_can_be_marked_as_paid_outside_of_stripe(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    subscription = account.subscribe(account.create_paying_customer("pm_card_chargeCustomerFail"), amount)
    (invoice,) = account.invoices(subscription)
    controls.pay_out_of_band(str(invoice.id))
    paid = account.v1.invoices.retrieve(str(invoice.id))
    assert (paid.status, paid.amount_paid, paid.amount_paid_off_stripe) == ("paid", amount, amount)


def test_a_detached_card_pays_nothing_more(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    subscription, _ = pay_first_invoice(account, amount)
    card = account.v1.payment_methods.list({"customer": str(subscription.customer)}).data[0].id
    account.v1.subscriptions.update(subscription.id, {"default_payment_method": card})
    account.v1.payment_methods.detach(card)
    controls.advance_to(subscription["items"].data[0].current_period_end + 2 * HOUR)
    assert [(item.status, item.amount_paid) for item in account.invoices(subscription)] == [
        ("paid", amount),
        ("open", 0),
    ]
    assert account.v1.subscriptions.retrieve(subscription.id).status == "past_due"


def test_nothing_more_is_collected_from_a_deleted_customer(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    subscription, _ = pay_first_invoice(account, amount)
    controls.advance_to(subscription["items"].data[0].current_period_end + 60)
    account.v1.customers.delete(str(subscription.customer))
    controls.advance(60 * DAY)
    assert [item.status for item in account.invoices(subscription)] == ["paid", "draft"]


def test_an_invoice_item_is_a_paid_invoice_without_a_subscription(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    customer = account.create_paying_customer()
    created = controls.create_invoice(customer.id, amount)
    invoice = account.v1.invoices.retrieve(created["id"])
    assert (invoice.status, invoice.billing_reason, invoice.amount_paid, invoice.parent) == (
        "paid",
        "manual",
        amount,
        None,
    )
    parent = invoice.lines.data[0].parent
    assert parent is not None
    assert parent.type == "invoice_item_details"


def test_the_events_of_dashboard_actions_match_the_schemas(
    account: DoubleAccount, controls: ControlClient, webhooks: WebhookReceiver, amount: int
) -> None:
    actions: list[Callable[[str], Any]] = [
        lambda intent: controls.fail_refund(controls.refund(intent)["id"]),
        lambda intent: controls.close_dispute(controls.open_dispute(intent)["id"], won=True),
    ]
    for action in actions:
        action(pay_first_invoice(account, amount)[1])
    subscription, _ = pay_first_invoice(account, amount)
    controls.create_credit_note(str(account.invoices(subscription)[0].id), 50)
    account.v1.subscriptions.cancel(subscription.id)
    account.v1.customers.delete(str(subscription.customer))
    controls.settle()
    response_checks(strict=True).check_objects(webhooks.events, "webhook")
    assert {"refund.failed", "charge.dispute.closed", "credit_note.created", "customer.deleted"} < set(
        webhooks.types
    )


def test_an_invoice_can_be_paid_by_several_payments_each_refunded_for_itself(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    subscription, _ = pay_first_invoice(account, amount)
    card = account.v1.payment_methods.list({"customer": str(subscription.customer)}).data[0].id
    controls.change_card(card, decline_code="insufficient_funds")
    controls.advance_to(subscription["items"].data[0].current_period_end + 2 * HOUR)
    controls.change_card(card, decline_code=None)
    invoice = str(account.invoices(subscription)[-1].id)
    controls.pay_invoice_part(invoice, amount // 3)
    part = account.v1.invoices.retrieve(invoice)
    assert (part.status, part.amount_paid, part.amount_remaining) == (
        "open",
        amount // 3,
        amount - amount // 3,
    )
    account.v1.invoices.pay(invoice)
    paid = account.v1.invoices.retrieve(invoice, {"expand": ["payments"]})
    assert (paid.status, paid.amount_paid, paid.amount_remaining) == ("paid", amount, 0)
    payments = paid.payments.data if paid.payments else []
    assert sorted(payment.amount_paid or 0 for payment in payments) == sorted(
        [amount // 3, amount - amount // 3]
    )
    for payment in payments:
        refund = controls.refund(str(payment.payment.payment_intent))
        assert refund["amount"] == payment.amount_paid


def test_a_dispute_can_be_reinstated_in_part(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    _, intent = pay_first_invoice(account, amount)
    dispute = controls.open_dispute(intent)["id"]
    controls.reinstate_funds(dispute, amount // 2)
    half = account.v1.disputes.retrieve(dispute)
    assert [row.amount for row in half.balance_transactions] == [-amount, amount // 2]
    controls.reinstate_funds(dispute)
    assert sum(row.amount for row in account.v1.disputes.retrieve(dispute).balance_transactions) == 0
    with pytest.raises(ControlError):
        controls.reinstate_funds(dispute, 1)


def test_a_card_network_warns_of_fraud(account: DoubleAccount, controls: ControlClient, amount: int) -> None:
    _, intent = pay_first_invoice(account, amount)
    made = controls.warn_of_fraud(intent)
    (listed,) = account.v1.radar.early_fraud_warnings.list({"payment_intent": intent}).data
    assert (listed.id, listed.actionable) == (made["id"], True)
    controls.emit_event("balance.available", {"object": "balance", "livemode": False})
    assert account.event_types("balance.")[-1:] == ["balance.available"]


@pytest.mark.parametrize("ending", ["refunded", "disputed"])
def test_a_warning_is_not_actionable_once_the_money_is_returned(
    account: DoubleAccount, controls: ControlClient, amount: int, ending: str
) -> None:
    _, intent = pay_first_invoice(account, amount)
    made = controls.warn_of_fraud(intent)
    refund = controls.refund(intent, amount - 1)
    assert account.v1.radar.early_fraud_warnings.retrieve(made["id"]).actionable
    if ending == "refunded":
        refund = controls.refund(intent)
    else:
        controls.open_dispute(intent)
    assert not account.v1.radar.early_fraud_warnings.retrieve(made["id"]).actionable
    controls.fail_refund(refund["id"])
    assert account.v1.radar.early_fraud_warnings.retrieve(made["id"]).actionable == (ending == "refunded")
    changes = {"refunded": 2, "disputed": 1}[ending]
    assert len(account.event_types("radar.early_fraud_warning.updated")) == changes


def test_the_balance_is_paid_out_to_the_bank(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    account.subscribe(account.create_paying_customer(), amount)
    kept = sum(row.net for row in account.v1.balance_transactions.list({"limit": 100}).auto_paging_iter())

    (payout,) = controls.pay_out()["payouts"]

    newest = account.v1.balance_transactions.list({"limit": 1, "expand": ["data.source"]}).data[0]
    assert (newest.type, newest.amount, newest.fee) == ("payout", -kept, 0)
    assert isinstance(newest.source, stripe.Payout)
    assert (newest.source.id, newest.source.amount) == (payout["id"], kept)


def test_a_subscription_that_has_ended_gets_no_other_status(
    account: DoubleAccount, controls: ControlClient, amount: int
) -> None:
    subscription, _ = pay_first_invoice(account, amount)
    account.v1.subscriptions.cancel(subscription.id)
    for status in ("trialing", "paused"):
        with pytest.raises(ControlError, match="is canceled"):
            controls.set_status(subscription.id, status)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "canceled"


@pytest.mark.parametrize(("decline_code", "status"), [(None, "active"), ("insufficient_funds", "incomplete")])
def test_a_bank_may_decide_later_and_until_then_nothing_is_paid_or_voided(
    account: DoubleAccount, controls: ControlClient, amount: int, decline_code: str | None, status: str
) -> None:
    controls.off_session("processing")
    subscription = account.subscribe(account.create_paying_customer(), amount, off_session=True)
    intent = account.payment_intent_of(subscription)
    (invoice,) = account.invoices(subscription)
    assert (subscription.status, account.v1.payment_intents.retrieve(intent).status) == (
        "incomplete",
        "processing",
    )
    for change in (account.v1.invoices.pay, account.v1.invoices.void_invoice):
        with pytest.raises(stripe.InvalidRequestError, match="processing"):
            change(str(invoice.id))
    controls.settle_payment(intent, decline_code=decline_code)
    assert account.v1.subscriptions.retrieve(subscription.id).status == status
    with pytest.raises(ControlError):
        controls.settle_payment(intent)
