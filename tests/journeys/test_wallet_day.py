"""What the wallet journey shows of earnings, on the real service: every figure agrees, and the books add up."""

import pytest

from devstack.journey.check_in import check_in
from devstack.journey.dashboard import check_dashboard
from devstack.journey.earnings import Earner, earn_everywhere, level_up, networks_of
from devstack.journey.relay_calls import write_data
from devstack.journey.subscriber import Subscriber
from devstack.stack_file import described_networks
from devstack.stripe_account import StripeAccount
from tests.journeys.people import Person
from tests.journeys.stack import Stack

pytestmark = pytest.mark.journey
_PATIENCE, _LEVELS = 300, 3
_EARNED = {"PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS", "EARNING_REVERSAL", "CREDITS_BACK"}


def test_a_wallet_earns_everywhere_levels_up_spends_and_finds_its_books_in_order(
    stack: Stack, person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    key = stack.services.google.private_key
    described = described_networks(stack.networks, base_url=stack.web.url, admob_key=key)
    earner = Earner(person.wallet, networks_of({"networks": described}))

    earn_everywhere(earner, lambda *words: stack.manage(*words).stdout)
    check_in(earner)
    for _ in range(_LEVELS):
        level_up(earner)
    provider = StripeAccount(stack.provider.url, stack.provider.secret_key)
    spender = Subscriber(person.wallet, provider, credits=earner.dashboard.credits, patience=_PATIENCE)
    spender.spend(write_data)
    spender.check_quota(total=0, reset=-1)
    check_dashboard(person.wallet)

    printed = capsys.readouterr().out
    for slug in described:
        assert f"✓ {slug} (" in printed
    assert printed.count("levelled up") == _LEVELS
    shown = person.wallet.dashboard()
    assert {entry["credit_source"] for entry in shown["earningHistory"]} >= _EARNED
