"""The beginning of a subscription: paid, refused, waiting, free, too cheap to charge."""

import secrets

import pytest
import stripe

from tests.devstack.stripe.worlds import DAY, HOUR, World


def first_invoice(subscription: stripe.Subscription) -> stripe.Invoice:
    """Return the expanded first invoice."""
    assert isinstance(subscription.latest_invoice, stripe.Invoice)
    return subscription.latest_invoice


def test_a_good_card_makes_the_subscription_active_and_the_first_invoice_paid(
    world: World, amount: int
) -> None:
    customer = world.new_payer()
    subscription = world.subscribe(customer, amount)
    item, invoice = subscription["items"].data[0], first_invoice(subscription)
    assert (subscription.status, subscription.customer, subscription.currency) == (
        "active",
        customer.id,
        "usd",
    )
    assert subscription.billing_mode.type == "flexible"
    assert 28 * DAY <= item.current_period_end - item.current_period_start <= 31 * DAY
    assert item.price.unit_amount == amount
    assert (invoice.status, invoice.billing_reason) == ("paid", "subscription_create")
    assert (invoice.amount_due, invoice.amount_paid, invoice.amount_remaining) == (amount, amount, 0)
    assert not invoice.amount_paid_off_stripe
    assert invoice.status_transitions.paid_at is not None


def test_the_line_carries_the_period_and_its_parent_the_subscription_item(world: World, amount: int) -> None:
    note = secrets.token_hex(8)
    subscription = world.subscribe(world.new_payer(), amount, metadata={"note": note})
    item, invoice = subscription["items"].data[0], first_invoice(subscription)
    line = invoice.lines.data[0]
    assert (line.period.start, line.period.end) == (item.current_period_start, item.current_period_end)
    assert line.parent is not None
    assert line.parent.subscription_item_details is not None
    details = line.parent.subscription_item_details
    assert (details.subscription_item, details.subscription) == (item.id, subscription.id)
    assert not details.proration
    assert invoice.parent is not None
    assert invoice.parent.subscription_details is not None
    assert invoice.parent.subscription_details.subscription == subscription.id
    assert invoice.parent.subscription_details.metadata is not None
    assert invoice.parent.subscription_details.metadata["note"] == note


def test_the_way_from_the_payment_intent_back_to_the_invoice(world: World, amount: int) -> None:
    invoice = first_invoice(world.subscribe(world.new_payer(), amount))
    assert invoice.payments is not None
    intent = str(invoice.payments.data[0].payment.payment_intent)
    listed = world.v1.invoice_payments.list({"payment": {"type": "payment_intent", "payment_intent": intent}})
    assert [(item.invoice, item.amount_paid, item.status) for item in listed.data] == [
        (invoice.id, amount, "paid")
    ]
    found = world.v1.payment_intents.retrieve(intent, {"expand": ["latest_charge"]})
    assert isinstance(found.latest_charge, stripe.Charge)
    assert (found.status, found.latest_charge.amount_captured) == ("succeeded", amount)


def test_without_any_card_nothing_is_begun(world: World, amount: int) -> None:
    customer = world.new_customer()
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.subscribe(customer, amount)
    assert (refused.value.http_status, refused.value.code) == (400, "resource_missing")
    assert not world.v1.subscriptions.list({"customer": customer.id, "status": "all"}).data


def test_a_refused_card_leaves_an_incomplete_subscription_with_an_open_invoice(
    world: World, amount: int
) -> None:
    subscription = world.subscribe(world.new_payer("pm_card_chargeCustomerFail"), amount)
    invoice = first_invoice(subscription)
    assert (subscription.status, invoice.status, invoice.amount_paid) == ("incomplete", "open", 0)
    assert (invoice.attempted, invoice.amount_remaining) == (True, amount)
    assert invoice.payments is not None
    intent = world.v1.payment_intents.retrieve(str(invoice.payments.data[0].payment.payment_intent))
    assert intent.status == "requires_payment_method"
    assert intent.last_payment_error is not None
    assert intent.last_payment_error.decline_code == "generic_decline"


def test_error_if_incomplete_answers_with_the_refusal_and_begins_nothing(world: World, amount: int) -> None:
    customer = world.new_payer("pm_card_chargeCustomerFail")
    with pytest.raises(stripe.CardError) as refused:
        world.subscribe(customer, amount, payment_behavior="error_if_incomplete")
    assert refused.value.error is not None
    assert refused.value.error.decline_code == "generic_decline"
    assert not world.v1.subscriptions.list({"customer": customer.id, "status": "all"}).data


def test_error_if_incomplete_says_when_the_holder_is_needed(world: World, amount: int) -> None:
    customer = world.new_payer("pm_card_authenticationRequired")
    with pytest.raises(stripe.CardError) as refused:
        world.subscribe(customer, amount, payment_behavior="error_if_incomplete")
    assert refused.value.code == "subscription_payment_intent_requires_action"


def test_a_card_whose_bank_asks_leaves_an_intent_to_be_finished(world: World, amount: int) -> None:
    subscription = world.subscribe(world.new_payer("pm_card_authenticationRequired"), amount)
    invoice = first_invoice(subscription)
    assert (subscription.status, invoice.status) == ("incomplete", "open")
    assert invoice.confirmation_secret is not None
    intent = invoice.confirmation_secret.client_secret.split("_secret_")[0]
    found = world.v1.payment_intents.retrieve(intent)
    assert found.status == "requires_action"


def test_default_incomplete_waits_for_a_confirmation_that_activates_it(world: World, amount: int) -> None:
    customer = world.new_customer()
    subscription = world.subscribe(
        customer,
        amount,
        payment_behavior="default_incomplete",
        payment_settings={"save_default_payment_method": "on_subscription"},
    )
    invoice = first_invoice(subscription)
    assert (subscription.status, invoice.status) == ("incomplete", "open")
    assert invoice.confirmation_secret is not None
    intent = invoice.confirmation_secret.client_secret.split("_secret_")[0]
    confirmed = world.v1.payment_intents.confirm(
        intent, {"payment_method": "pm_card_visa", "return_url": "https://wallet.example/back"}
    )
    assert confirmed.status == "succeeded"
    active = world.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice"]})
    assert (active.status, first_invoice(active).status) == ("active", "paid")
    assert active.default_payment_method == confirmed.payment_method


def test_an_incomplete_subscription_expires_after_23_hours_and_its_invoice_is_void(
    world: World, amount: int
) -> None:
    customer = world.new_payer("pm_card_chargeCustomerFail")
    subscription = world.subscribe(customer, amount)
    world.pass_time(customer, 22 * HOUR)
    assert world.v1.subscriptions.retrieve(subscription.id).status == "incomplete"
    world.pass_time(customer, 2 * HOUR)
    expired = world.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice"]})
    assert (expired.status, first_invoice(expired).status) == ("incomplete_expired", "void")


def test_paying_the_open_invoice_with_another_card_activates_the_subscription(
    world: World, amount: int
) -> None:
    customer = world.new_payer("pm_card_chargeCustomerFail")
    subscription = world.subscribe(customer, amount)
    invoice = first_invoice(subscription)
    with pytest.raises(stripe.CardError) as refused:
        world.v1.invoices.pay(str(invoice.id))
    assert refused.value.code == "card_declined"
    card = world.v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    paid = world.v1.invoices.pay(str(invoice.id), {"payment_method": card.id})
    assert (paid.status, paid.amount_paid) == ("paid", amount)
    assert world.v1.subscriptions.retrieve(subscription.id).status == "active"


def test_what_is_too_little_to_charge_is_marked_paid_and_owed_with_the_next_invoice(world: World) -> None:
    customer, little = world.new_payer(), 1 + secrets.randbelow(49)
    subscription = world.subscribe(customer, little)
    invoice = first_invoice(subscription)
    assert (subscription.status, invoice.status) == ("active", "paid")
    assert (invoice.total, invoice.amount_paid, invoice.ending_balance) == (little, 0, little)
    assert not invoice.payments or not invoice.payments.data
    found = world.v1.customers.retrieve(customer.id)
    assert found.balance == little


def test_a_free_subscription_is_active_without_a_card(world: World) -> None:
    subscription = world.subscribe(world.new_customer(), 0)
    invoice = first_invoice(subscription)
    assert (subscription.status, invoice.status, invoice.amount_paid) == ("active", "paid", 0)


def test_a_second_currency_beside_a_live_subscription_is_refused(world: World, amount: int) -> None:
    customer = world.new_payer()
    world.subscribe(customer, amount, "usd")
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.subscribe(customer, amount, "eur")
    assert "combine currencies" in str(refused.value)


def test_the_price_needs_a_product_that_exists(world: World, amount: int) -> None:
    customer = world.new_payer()
    price = {"currency": "usd", "unit_amount": amount, "recurring": {"interval": "month"}}
    with pytest.raises(stripe.InvalidRequestError) as missing:
        world.subscribe(customer, amount, items=[{"price_data": price}])
    assert missing.value.code == "parameter_missing"
    with pytest.raises(stripe.InvalidRequestError) as unknown:
        world.subscribe(customer, amount, items=[{"price_data": {**price, "product": "prod_neverwas"}}])
    assert unknown.value.code == "resource_missing"


def test_an_inline_product_is_not_taken_on_a_subscription_item(world: World, amount: int) -> None:
    price = {
        "currency": "usd",
        "unit_amount": amount,
        "recurring": {"interval": "month"},
        "product_data": {"name": "Credits"},
    }
    with pytest.raises(stripe.InvalidRequestError) as refused:
        world.subscribe(world.new_payer(), amount, items=[{"price_data": price}])
    assert refused.value.code in ("parameter_unknown", "parameter_missing")
