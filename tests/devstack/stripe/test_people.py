"""What people and banks do away from the API."""

import secrets
from collections.abc import Callable
from typing import Any

import pytest
import stripe

from devstack.stripe.client import ControlClient, ControlError
from tests.devstack.stripe.mailbox import Mailbox
from tests.devstack.stripe.shapes import Shapes
from tests.devstack.stripe.worlds import DAY, HOUR, DoubleWorld


def paid(here: DoubleWorld, amount: int, card: str = "pm_card_visa") -> tuple[stripe.Subscription, str]:
    """Return a paid subscription and the payment intent of its first invoice."""
    subscription = here.subscribe(here.new_payer(card), amount)
    return subscription, intent_of(here, subscription)


def intent_of(here: DoubleWorld, subscription: stripe.Subscription) -> str:
    """Return the payment intent of the latest invoice."""
    latest = here.v1.subscriptions.retrieve(
        subscription.id, {"expand": ["latest_invoice.payments"]}
    ).latest_invoice
    assert isinstance(latest, stripe.Invoice)
    assert latest.payments is not None
    return str(latest.payments.data[0].payment.payment_intent)


def told(here: DoubleWorld, prefix: str) -> list[str]:
    """Return the types of events that begin like this, oldest first."""
    listed = here.v1.events.list({"limit": 100})
    return [event.type for event in reversed(listed.data) if event.type.startswith(prefix)]


def test_a_cardholder_who_agrees_completes_the_setup(here: DoubleWorld, controls: ControlClient) -> None:
    customer = here.new_customer()
    intent = here.set_up(customer, "pm_card_authenticationRequired")
    controls.authenticate(intent.id)
    done = here.v1.setup_intents.retrieve(intent.id, {"expand": ["payment_method"]})
    assert done.status == "succeeded"
    assert isinstance(done.payment_method, stripe.PaymentMethod)
    assert done.payment_method.customer == customer.id
    assert told(here, "setup_intent.")[-2:] == ["setup_intent.requires_action", "setup_intent.succeeded"]


def test_a_cardholder_who_does_not_agree_leaves_the_setup_without_a_card(
    here: DoubleWorld, controls: ControlClient
) -> None:
    intent = here.set_up(here.new_customer(), "pm_card_threeDSecure2Required")
    controls.authenticate(intent.id, succeeds=False)
    failed = here.v1.setup_intents.retrieve(intent.id)
    assert (failed.status, failed.payment_method) == ("requires_payment_method", None)
    assert failed.last_setup_error is not None
    assert failed.last_setup_error.code == "setup_intent_authentication_failure"
    with pytest.raises(ControlError):
        controls.authenticate(intent.id)


@pytest.mark.parametrize(("agrees", "status"), [(True, "active"), (False, "incomplete")])
def test_the_first_payment_depends_on_its_cardholder(
    agrees: bool, status: str, here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    subscription = here.subscribe(here.new_payer("pm_card_authenticationRequired"), amount)
    controls.authenticate(intent_of(here, subscription), succeeds=agrees)
    assert here.v1.subscriptions.retrieve(subscription.id).status == status
    assert ("invoice.paid" in told(here, "invoice.")) is agrees


def test_a_card_that_was_set_up_is_charged_without_its_holder(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    customer = here.new_customer()
    intent = here.set_up(customer, "pm_card_authenticationRequiredOnSetup")
    controls.authenticate(intent.id)
    card = str(here.v1.setup_intents.retrieve(intent.id).payment_method)
    asked = here.subscribe(customer, amount, default_payment_method=card)
    assert asked.status == "incomplete"
    assert here.subscribe(customer, amount, default_payment_method=card, off_session=True).status == "active"


def test_a_card_with_a_poor_account_is_set_up_and_then_refused(here: DoubleWorld, amount: int) -> None:
    customer = here.new_customer()
    intent = here.set_up(customer, "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds")
    assert intent.status == "succeeded"
    with pytest.raises(stripe.CardError) as refused:
        here.subscribe(
            customer,
            amount,
            default_payment_method=intent.payment_method,
            off_session=True,
            payment_behavior="error_if_incomplete",
        )
    assert refused.value.error is not None
    assert refused.value.error.decline_code == "insufficient_funds"


def test_a_good_card_can_turn_bad_and_good_again(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    subscription, _ = paid(here, amount)
    card = here.v1.payment_methods.list({"customer": str(subscription.customer)}).data[0].id
    controls.change_card(card, decline_code="insufficient_funds")
    controls.advance_to(subscription["items"].data[0].current_period_end + 2 * HOUR)
    assert here.v1.subscriptions.retrieve(subscription.id).status == "past_due"
    controls.change_card(card, decline_code=None)
    controls.advance(4 * DAY)
    assert here.v1.subscriptions.retrieve(subscription.id).status == "active"
    assert here.invoices(subscription)[1].attempt_count == 2


@pytest.mark.parametrize(
    ("outcome", "status"), [("cancel", "canceled"), ("unpaid", "unpaid"), ("leave", "past_due")]
)
def test_the_dashboard_decides_what_follows_the_last_retry(
    outcome: str, status: str, here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    controls.after_retries(outcome)
    subscription, _ = paid(here, amount)
    card = here.v1.payment_methods.list({"customer": str(subscription.customer)}).data[0].id
    controls.change_card(card, decline_code="lost_card")
    end = subscription["items"].data[0].current_period_end
    controls.advance_to(end + 14 * DAY)
    assert here.v1.subscriptions.retrieve(subscription.id).status == "past_due"
    controls.advance_to(end + 17 * DAY)
    found = here.v1.subscriptions.retrieve(subscription.id)
    assert found.status == status
    assert here.invoices(subscription)[1].attempt_count == 4
    if outcome == "cancel":
        assert found.cancellation_details is not None
        assert found.cancellation_details.reason == "payment_failed"


def test_a_dispute_takes_the_money_and_a_won_one_returns_it(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    _, intent = paid(here, amount)
    dispute = controls.open_dispute(intent)
    found = here.v1.disputes.retrieve(dispute["id"], {"expand": ["charge"]})
    assert (found.status, found.amount, found.payment_intent) == ("needs_response", amount, intent)
    assert isinstance(found.charge, stripe.Charge)
    assert found.charge.disputed
    assert [moved.amount for moved in found.balance_transactions] == [-amount]
    controls.close_dispute(dispute["id"], won=True)
    won = here.v1.disputes.retrieve(dispute["id"])
    assert (won.status, [moved.amount for moved in won.balance_transactions]) == ("won", [-amount, amount])
    assert told(here, "charge.dispute.") == [
        "charge.dispute.created",
        "charge.dispute.funds_withdrawn",
        "charge.dispute.closed",
        "charge.dispute.funds_reinstated",
    ]


def test_the_steps_of_a_dispute_can_be_taken_one_by_one(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    _, intent = paid(here, amount)
    part = 1 + secrets.randbelow(amount - 1)
    dispute = controls.open_dispute(intent, amount=part, withdraw=False)["id"]
    with pytest.raises(ControlError):
        controls.reinstate_funds(dispute)
    controls.withdraw_funds(dispute)
    controls.reinstate_funds(dispute)
    controls.withdraw_funds(dispute)
    controls.close_dispute(dispute, won=False)
    lost = here.v1.disputes.list({"payment_intent": intent}).data[0]
    assert (lost.status, [moved.amount for moved in lost.balance_transactions]) == (
        "lost",
        [-part, part, -part],
    )
    with pytest.raises(ControlError):
        controls.close_dispute(dispute, won=True)


def test_stripes_test_card_for_disputes_and_its_test_words_for_evidence(
    here: DoubleWorld, amount: int
) -> None:
    _, intent = paid(here, amount, "pm_card_createDispute")
    (dispute,) = here.v1.disputes.list({"payment_intent": intent}).data
    assert dispute.reason == "fraudulent"
    decided = here.v1.disputes.update(dispute.id, {"evidence": {"uncategorized_text": "winning_evidence"}})
    assert decided.status == "won"


def test_a_disputed_charge_is_not_refunded(here: DoubleWorld, controls: ControlClient, amount: int) -> None:
    _, intent = paid(here, amount)
    controls.open_dispute(intent)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        here.v1.refunds.create({"payment_intent": intent})
    assert refused.value.code == "charge_disputed"


def test_a_refund_at_the_dashboard_can_fail_after_all(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    _, intent = paid(here, amount)
    made = controls.refund(intent, 100)
    controls.fail_refund(made["id"])
    failed = here.v1.refunds.retrieve(made["id"], {"expand": ["charge"]})
    assert (failed.status, failed.failure_reason) == ("failed", "lost_or_stolen_card")
    assert isinstance(failed.charge, stripe.Charge)
    assert failed.charge.amount_refunded == 0
    assert told(here, "refund.") == ["refund.created", "refund.updated", "refund.failed"]
    events = here.v1.events.list({"types": ["refund.created", "charge.refunded"]}).data
    assert all(event.request is not None and event.request.id is None for event in events)


@pytest.mark.parametrize(
    ("card", "at_once", "later"),
    [("pm_card_pendingRefund", "pending", "succeeded"), ("pm_card_refundFail", "succeeded", "failed")],
)
def test_some_cards_answer_a_refund_later(
    card: str, at_once: str, later: str, here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    _, intent = paid(here, amount, card)
    refund = here.v1.refunds.create({"payment_intent": intent})
    assert refund.status == at_once
    controls.advance(HOUR)
    assert here.v1.refunds.retrieve(refund.id).status == later


def test_an_invoice_paid_by_credit_note_collected_nothing(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    subscription = here.subscribe(here.new_payer("pm_card_chargeCustomerFail"), amount)
    (invoice,) = here.invoices(subscription)
    controls.create_credit_note(str(invoice.id))
    found = here.v1.invoices.retrieve(str(invoice.id))
    assert (found.status, found.amount_paid, found.pre_payment_credit_notes_amount) == ("paid", 0, amount)
    assert told(here, "invoice.p") == ["invoice.payment_failed", "invoice.paid"]
    (note,) = here.v1.credit_notes.list({"invoice": str(invoice.id)}).data
    assert (note.amount, note.pre_payment_amount, note.post_payment_amount) == (amount, amount, 0)


def test_a_partial_credit_note_lowers_what_is_collected(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    customer = here.new_payer("pm_card_chargeCustomerFail")
    subscription = here.subscribe(customer, amount)
    (invoice,) = here.invoices(subscription)
    controls.create_credit_note(str(invoice.id), 100)
    card = here.v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    settled = here.v1.invoices.pay(str(invoice.id), {"payment_method": card.id})
    assert (settled.total, settled.amount_paid) == (amount, amount - 100)


def test_a_credit_note_after_payment_goes_to_the_balance(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    subscription, _ = paid(here, amount)
    (invoice,) = here.invoices(subscription)
    controls.create_credit_note(str(invoice.id), 200)
    found = here.v1.invoices.retrieve(str(invoice.id))
    assert (found.status, found.amount_paid, found.post_payment_credit_notes_amount) == ("paid", amount, 200)
    assert here.v1.customers.retrieve(str(subscription.customer)).balance == -200
    controls.advance_to(subscription["items"].data[0].current_period_end + 2 * HOUR)
    renewal = here.invoices(subscription)[1]
    assert (renewal.starting_balance, renewal.amount_paid, renewal.ending_balance) == (-200, amount - 200, 0)


def test_a_customer_with_enough_balance_pays_nothing_by_card(here: DoubleWorld) -> None:
    customer = here.new_payer()
    here.v1.customers.update(customer.id, {"balance": -10_000})
    subscription = here.subscribe(customer, 2_550)
    (invoice,) = here.invoices(subscription)
    assert (subscription.status, invoice.total, invoice.amount_paid) == ("active", 2_550, 0)
    assert (invoice.starting_balance, invoice.ending_balance) == (-10_000, -7_450)


def test_an_invoice_paid_outside_of_stripe(here: DoubleWorld, controls: ControlClient, amount: int) -> None:
    subscription = here.subscribe(here.new_payer("pm_card_chargeCustomerFail"), amount)
    (invoice,) = here.invoices(subscription)
    controls.pay_out_of_band(str(invoice.id))
    found = here.v1.invoices.retrieve(str(invoice.id))
    assert (found.status, found.amount_paid, found.amount_paid_off_stripe) == ("paid", amount, amount)


def test_a_detached_card_pays_nothing_more(here: DoubleWorld, controls: ControlClient, amount: int) -> None:
    subscription, _ = paid(here, amount)
    card = here.v1.payment_methods.list({"customer": str(subscription.customer)}).data[0].id
    here.v1.subscriptions.update(subscription.id, {"default_payment_method": card})
    here.v1.payment_methods.detach(card)
    controls.advance_to(subscription["items"].data[0].current_period_end + 2 * HOUR)
    assert [(it.status, it.amount_paid) for it in here.invoices(subscription)] == [
        ("paid", amount),
        ("open", 0),
    ]
    assert here.v1.subscriptions.retrieve(subscription.id).status == "past_due"


def test_nothing_more_is_collected_from_a_deleted_customer(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    subscription, _ = paid(here, amount)
    here.v1.invoices.create({"customer": str(subscription.customer), "auto_advance": True})
    controls.advance_to(subscription["items"].data[0].current_period_end + 60)
    here.v1.customers.delete(str(subscription.customer))
    controls.advance(60 * DAY)
    assert [it.status for it in here.invoices(subscription)] == ["paid", "draft"]
    with pytest.raises(stripe.InvalidRequestError):
        here.v1.invoices.finalize_invoice(str(here.invoices(subscription)[1].id))


def test_something_sold_beside_the_subscription_is_a_paid_invoice_without_a_period(
    here: DoubleWorld, controls: ControlClient, amount: int
) -> None:
    customer = here.new_payer()
    made = controls.create_invoice(customer.id, amount)
    found = here.v1.invoices.retrieve(made["id"])
    assert (found.status, found.billing_reason, found.amount_paid, found.parent) == (
        "paid",
        "manual",
        amount,
        None,
    )
    parent = found.lines.data[0].parent
    assert parent is not None
    assert parent.type == "invoice_item_details"


def test_everything_people_cause_is_told_in_stripes_shapes(
    here: DoubleWorld, controls: ControlClient, mailbox: Mailbox, amount: int
) -> None:
    acts: list[Callable[[str], Any]] = [
        lambda intent: controls.fail_refund(controls.refund(intent)["id"]),
        lambda intent: controls.close_dispute(controls.open_dispute(intent)["id"], won=True),
    ]
    for act in acts:
        act(paid(here, amount)[1])
    subscription, _ = paid(here, amount)
    controls.create_credit_note(str(here.invoices(subscription)[0].id), 50)
    here.v1.subscriptions.cancel(subscription.id)
    here.v1.customers.delete(str(subscription.customer))
    controls.settle()
    Shapes(strict=True).check_things(mailbox.events, "webhook")
    assert {"refund.failed", "charge.dispute.closed", "credit_note.created", "customer.deleted"} < set(
        mailbox.types
    )
