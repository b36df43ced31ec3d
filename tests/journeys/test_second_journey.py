"""The journey of `make run` on a stack that has played one before, which was interrupted."""

import pytest

from devstack.journey.check_in import check_in
from devstack.journey.earnings import Earner, networks_of
from devstack.journey.relay_calls import write_data
from devstack.journey.subscriber import Subscriber
from devstack.journey.subscriptions import catch_up, set_clock_back, subscribe_today
from devstack.stack_file import described_networks
from devstack.stripe_account import StripeAccount
from tests.journeys.billing import Payer
from tests.journeys.people import Person
from tests.journeys.stack import Stack

pytestmark = pytest.mark.journey


def test_it_leaves_the_clock_alone_ends_the_open_subscription_and_subscribes_and_checks_in_again(
    stack: Stack, person: Person, capfd: pytest.CaptureFixture[str]
) -> None:
    wallet, provider = person.wallet, StripeAccount(stack.provider.url, stack.provider.secret_key)
    Payer(person, stack, amount=700).with_card().subscribed()
    admob = stack.services.verifier_keys.private_key
    networks = described_networks(stack.networks, base_url=stack.web.url, admob_key=admob)
    earner = Earner(wallet, networks_of({"networks": networks}))
    check_in(earner)
    check_in(earner)
    subscriber = Subscriber(wallet, provider, credits=int(wallet.quota()["quota"]), patience=300)

    assert not set_clock_back(provider, lead=20)
    catch_up(subscriber)
    first = subscriber.credits
    subscribe_today(subscriber, spend=write_data)

    assert subscriber.credits > first
    printed = capfd.readouterr().out
    assert "no attempt is left today" in printed
    assert "an earlier journey was interrupted; its subscription is ended" in printed
