"""Subscriptions that somebody ended and began at Stripe's dashboard, and that we are told of together."""

import secrets

import pytest

from payments.models import StripeEvent, Subscription
from tests.fakes.billing import FakeBilling
from tests.payments.mail import deliver
from tests.payments.people import Payer
from users.models import User

pytestmark = pytest.mark.django_db


def test_a_new_one_takes_the_place_of_one_that_has_ended_unheard(
    fake: FakeBilling, user: User, amount: int
) -> None:
    payer = Payer(fake, user).with_card()
    old = payer.upsert(amount).stripe_subscription_id
    fake.cancel_subscription(subscription_id=old, key=secrets.token_hex(8))
    new = fake.create_subscription(
        customer_id=payer.customer.stripe_customer_id,
        amount_minor=amount + 1,
        currency="usd",
        cancels_at_period_end=False,
        key=secrets.token_hex(8),
    ).subscription_id
    assert Subscription.objects.living().get().stripe_subscription_id == old
    told = len(fake.events)
    payer.with_card()
    # A card is the one thing whose event is about all of a customer's subscriptions at once.
    card = next(body for body in fake.events[told:] if b"setup_intent.succeeded" in body)
    deliver([card], now=fake.now())
    assert StripeEvent.objects.values_list("status", "last_error").get() == ("processed", "")
    assert dict(Subscription.objects.values_list("stripe_subscription_id", "status")) == {
        old: "canceled",
        new: "active",
    }
