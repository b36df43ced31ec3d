"""The beginning of a subscription: paid, raised, waiting, free, too cheap to charge."""

import secrets

import pytest
import stripe

from accounts import DAY, HOUR, StripeAccount, latest_invoice


def test_a_good_card_makes_the_subscription_active_and_the_first_invoice_paid(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    item, invoice = subscription["items"].data[0], latest_invoice(subscription)
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


def test_the_line_has_the_period_and_its_parent_the_subscription_item(
    account: StripeAccount, amount: int
) -> None:
    note = secrets.token_hex(8)
    subscription = account.subscribe(account.create_paying_customer(), amount, metadata={"note": note})
    item, invoice = subscription["items"].data[0], latest_invoice(subscription)
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


def test_an_invoice_is_found_by_its_payment_intent(account: StripeAccount, amount: int) -> None:
    invoice = latest_invoice(account.subscribe(account.create_paying_customer(), amount))
    assert invoice.payments is not None
    intent = str(invoice.payments.data[0].payment.payment_intent)
    listed = account.v1.invoice_payments.list(
        {"payment": {"type": "payment_intent", "payment_intent": intent}}
    )
    assert [(item.invoice, item.amount_paid, item.status) for item in listed.data] == [
        (invoice.id, amount, "paid")
    ]
    payment_intent = account.v1.payment_intents.retrieve(intent, {"expand": ["latest_charge"]})
    assert isinstance(payment_intent.latest_charge, stripe.Charge)
    assert (payment_intent.status, payment_intent.latest_charge.amount_captured) == ("succeeded", amount)


def test_without_any_card_no_subscription_is_created(account: StripeAccount, amount: int) -> None:
    customer = account.create_customer()
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.subscribe(customer, amount)
    assert (raised.value.http_status, raised.value.code) == (400, "resource_missing")
    assert not account.v1.subscriptions.list({"customer": customer.id, "status": "all"}).data


def test_a_declined_card_leaves_an_incomplete_subscription_with_an_open_invoice(
    account: StripeAccount, amount: int
) -> None:
    subscription = account.subscribe(account.create_paying_customer("pm_card_chargeCustomerFail"), amount)
    invoice = latest_invoice(subscription)
    assert (subscription.status, invoice.status, invoice.amount_paid) == ("incomplete", "open", 0)
    assert (invoice.attempted, invoice.amount_remaining) == (True, amount)
    assert invoice.payments is not None
    intent = account.v1.payment_intents.retrieve(str(invoice.payments.data[0].payment.payment_intent))
    assert intent.status == "requires_payment_method"
    assert intent.last_payment_error is not None
    assert intent.last_payment_error.decline_code == "generic_decline"


def test_error_if_incomplete_returns_the_card_error_and_creates_nothing(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer("pm_card_chargeCustomerFail")
    with pytest.raises(stripe.CardError) as raised:
        account.subscribe(customer, amount, payment_behavior="error_if_incomplete")
    assert raised.value.error is not None
    assert raised.value.error.decline_code == "generic_decline"
    assert not account.v1.subscriptions.list({"customer": customer.id, "status": "all"}).data


def test_error_if_incomplete_names_a_required_authentication(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer("pm_card_authenticationRequired")
    with pytest.raises(stripe.CardError) as raised:
        account.subscribe(customer, amount, payment_behavior="error_if_incomplete")
    assert raised.value.code == "subscription_payment_intent_requires_action"


def test_a_card_that_requires_authentication_leaves_an_intent_to_be_confirmed(
    account: StripeAccount, amount: int
) -> None:
    subscription = account.subscribe(account.create_paying_customer("pm_card_authenticationRequired"), amount)
    invoice = latest_invoice(subscription)
    assert (subscription.status, invoice.status) == ("incomplete", "open")
    assert invoice.confirmation_secret is not None
    intent = invoice.confirmation_secret.client_secret.split("_secret_")[0]
    payment_intent = account.v1.payment_intents.retrieve(intent)
    assert payment_intent.status == "requires_action"


def test_default_incomplete_waits_for_a_confirmation_that_activates_it(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_customer()
    subscription = account.subscribe(
        customer,
        amount,
        payment_behavior="default_incomplete",
        payment_settings={"save_default_payment_method": "on_subscription"},
    )
    invoice = latest_invoice(subscription)
    assert (subscription.status, invoice.status) == ("incomplete", "open")
    assert invoice.confirmation_secret is not None
    intent = invoice.confirmation_secret.client_secret.split("_secret_")[0]
    confirmed = account.v1.payment_intents.confirm(
        intent, {"payment_method": "pm_card_visa", "return_url": "https://wallet.example/back"}
    )
    assert confirmed.status == "succeeded"
    active = account.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice"]})
    assert (active.status, latest_invoice(active).status) == ("active", "paid")
    assert active.default_payment_method == confirmed.payment_method


def test_an_incomplete_subscription_expires_after_23_hours_and_its_invoice_is_void(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer("pm_card_chargeCustomerFail")
    subscription = account.subscribe(customer, amount)
    account.pass_time(customer, 22 * HOUR)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "incomplete"
    account.pass_time(customer, 2 * HOUR)
    expired = account.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice"]})
    assert (expired.status, latest_invoice(expired).status) == ("incomplete_expired", "void")


def test_paying_the_open_invoice_with_another_card_activates_the_subscription(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer("pm_card_chargeCustomerFail")
    subscription = account.subscribe(customer, amount)
    invoice = latest_invoice(subscription)
    with pytest.raises(stripe.CardError) as raised:
        account.v1.invoices.pay(str(invoice.id))
    assert raised.value.code == "card_declined"
    card = account.v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    paid = account.v1.invoices.pay(str(invoice.id), {"payment_method": card.id})
    assert (paid.status, paid.amount_paid) == ("paid", amount)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "active"


def test_an_amount_below_the_minimum_is_marked_paid_and_added_to_the_balance(
    account: StripeAccount,
) -> None:
    customer, amount = account.create_paying_customer(), 1 + secrets.randbelow(49)
    subscription = account.subscribe(customer, amount)
    invoice = latest_invoice(subscription)
    assert (subscription.status, invoice.status) == ("active", "paid")
    assert (invoice.total, invoice.amount_paid, invoice.ending_balance) == (amount, 0, amount)
    assert not invoice.payments or not invoice.payments.data
    updated = account.v1.customers.retrieve(customer.id)
    assert updated.balance == amount


def test_a_free_subscription_is_active_without_a_card(account: StripeAccount) -> None:
    subscription = account.subscribe(account.create_customer(), 0)
    invoice = latest_invoice(subscription)
    assert (subscription.status, invoice.status, invoice.amount_paid) == ("active", "paid", 0)


def test_a_second_currency_beside_an_active_subscription_is_refused(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer()
    account.subscribe(customer, amount, "usd")
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.subscribe(customer, amount, "eur")
    assert "combine currencies" in str(raised.value)


def test_the_price_needs_a_product_that_exists(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer()
    price = {"currency": "usd", "unit_amount": amount, "recurring": {"interval": "month"}}
    with pytest.raises(stripe.InvalidRequestError) as missing:
        account.subscribe(customer, amount, items=[{"price_data": price}])
    assert missing.value.code == "parameter_missing"
    with pytest.raises(stripe.InvalidRequestError) as unknown:
        account.subscribe(customer, amount, items=[{"price_data": {**price, "product": "prod_neverwas"}}])
    assert unknown.value.code == "resource_missing"
