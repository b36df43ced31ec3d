"""Renewals: drafted, collected an hour later, changed, retried, given up."""

import pytest
import stripe

from accounts import DAY, HOUR, StripeAccount


def renew(account: StripeAccount, customer: stripe.Customer, subscription: stripe.Subscription) -> None:
    """Advance to a few minutes after the current period."""
    end = account.v1.subscriptions.retrieve(subscription.id)["items"].data[0].current_period_end
    account.pass_time(customer, end - account.now(customer) + 300)


def decline_from_now_on(account: StripeAccount, customer: stripe.Customer) -> None:
    """Make a card that is raised the customer's default."""
    card = account.v1.payment_methods.attach("pm_card_chargeCustomerFail", {"customer": customer.id})
    account.v1.customers.update(customer.id, {"invoice_settings": {"default_payment_method": card.id}})


def test_a_renewal_is_a_draft_for_an_hour_and_then_collected(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    old = subscription["items"].data[0]
    renew(account, customer, subscription)
    renewed = account.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice"]})
    new, draft = renewed["items"].data[0], renewed.latest_invoice
    assert isinstance(draft, stripe.Invoice)
    assert (renewed.status, new.current_period_start) == ("active", old.current_period_end)
    assert (draft.status, draft.billing_reason, draft.amount_paid) == ("draft", "subscription_cycle", 0)
    assert (draft.period_start, draft.period_end) == (old.current_period_start, old.current_period_end)
    period = draft.lines.data[0].period
    assert (period.start, period.end) == (new.current_period_start, new.current_period_end)
    account.pass_time(customer, 2 * HOUR)
    paid = account.v1.invoices.retrieve(str(draft.id))
    assert (paid.status, paid.amount_paid) == ("paid", amount)


def test_a_declined_renewal_is_past_due_until_a_new_card_pays(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    decline_from_now_on(account, customer)
    renew(account, customer, subscription)
    account.pass_time(customer, 2 * HOUR)
    late = account.v1.subscriptions.retrieve(subscription.id, {"expand": ["latest_invoice"]})
    assert isinstance(late.latest_invoice, stripe.Invoice)
    assert (late.status, late.latest_invoice.status) == ("past_due", "open")
    assert late.latest_invoice.next_payment_attempt is not None
    card = account.v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    account.v1.subscriptions.update(subscription.id, {"default_payment_method": card.id})
    account.v1.invoices.pay(str(late.latest_invoice.id))
    assert account.v1.subscriptions.retrieve(subscription.id).status == "active"


def test_an_amount_below_the_minimum_is_collected_with_the_renewal(account: StripeAccount) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, 30)
    renew(account, customer, subscription)
    account.pass_time(customer, 2 * HOUR)
    second = account.invoices(subscription)[1]
    assert (second.total, second.starting_balance, second.amount_due, second.amount_paid) == (30, 30, 60, 60)


def test_an_invoice_paid_out_of_band_collected_nothing_through_stripe(
    account: StripeAccount, amount: int
) -> None:
    customer = account.create_paying_customer("pm_card_chargeCustomerFail")
    subscription = account.subscribe(customer, amount)
    paid = account.v1.invoices.pay(str(account.invoices(subscription)[0].id), {"paid_out_of_band": True})
    assert (paid.status, paid.amount_remaining) == ("paid", 0)
    assert paid.amount_paid - (paid.amount_paid_off_stripe or 0) == 0
    assert account.v1.subscriptions.retrieve(subscription.id).status == "active"


@pytest.fixture
def open_invoice(account: StripeAccount, amount: int) -> str:
    """Return the invoice of a renewal that was declined."""
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    decline_from_now_on(account, customer)
    renew(account, customer, subscription)
    account.pass_time(customer, 2 * HOUR)
    return str(account.invoices(subscription)[1].id)


def test_a_void_invoice_cannot_be_paid(account: StripeAccount, open_invoice: str) -> None:
    assert account.v1.invoices.void_invoice(open_invoice).status == "void"
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.invoices.pay(open_invoice)


def test_an_open_invoice_is_written_off_once(account: StripeAccount, open_invoice: str) -> None:
    assert account.v1.invoices.mark_uncollectible(open_invoice).status == "uncollectible"
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.invoices.mark_uncollectible(open_invoice)


def test_a_paid_invoice_is_not_paid_again(account: StripeAccount, amount: int) -> None:
    subscription = account.subscribe(account.create_paying_customer(), amount)
    with pytest.raises(stripe.InvalidRequestError) as raised:
        account.v1.invoices.pay(str(account.invoices(subscription)[0].id))
    assert "already paid" in str(raised.value)


def test_the_next_periods_follow_without_a_gap(account: StripeAccount, amount: int) -> None:
    customer = account.create_paying_customer()
    subscription = account.subscribe(customer, amount)
    for _ in range(2):
        renew(account, customer, subscription)
        account.pass_time(customer, DAY)
    periods = [
        (item.lines.data[0].period.start, item.lines.data[0].period.end)
        for item in account.invoices(subscription)
    ]
    assert [end for _, end in periods[:-1]] == [start for start, _ in periods[1:]]
