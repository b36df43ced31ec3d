"""A policy pays for profiles that hold a token, or are in a follow relation, at the newest block."""

import random
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.errors import no_node_responds
from gateway.chain.lsp25 import RelayCall
from relay.services.accepting import preparation
from relay.services.accepting.preparation import Draft
from sponsors.errors import HoldingUnknown, NotHolding, TargetNotSponsored
from sponsors.models import PolicyVersion, Sponsor, SponsoredCall
from sponsors.services import holdings
from sponsors.services.paying import SponsorChoice
from tests.factories import random_address
from tests.relay.chain import FaultyClient
from tests.relay.conftest import Refused
from tests.relay.quoting import caller_of
from tests.relay.signing import set_data_payload
from tests.relay.sponsoring import execute_sponsored
from tests.relay.tokens import deploy_collection, deploy_fungible, follow
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db
NewCall = Callable[..., RelayCall]


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    holdings._recent.clear()


@pytest.fixture
def newcomer(profile: Profile, open_account: Callable[..., User]) -> User:
    """The owner of the profile, with a single credit."""
    return open_account(profile, 1)


@pytest.fixture
def views(node: FaultyClient, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The contracts that were read; the node does not respond while the list begins with "away"."""
    read, seen = node.read_view, list[str]()

    def read_view(*, contract: str, calldata: bytes) -> bytes:
        if seen[:1] == ["away"]:
            raise no_node_responds()
        seen.append(contract)
        return read(contract=contract, calldata=calldata)

    monkeypatch.setattr(node, "read_view", read_view)
    return seen


def holding_policy(sponsor: Sponsor, token: str, least: int, **terms: Any) -> PolicyVersion:
    return make_policy(sponsor, profiles="holding", counterpart=token, least_balance=least, **terms)


@pytest.mark.parametrize("beyond", [-1, 0])
@pytest.mark.parametrize("kind", ["fungible", "collection"])
def test_a_holder_is_sponsored_from_the_lowest_balance_on(
    services: Services, newcomer: User, new_call: NewCall, refused: Refused, kind: str, beyond: int
) -> None:
    own, sponsor = str(newcomer.profile_address), make_sponsor()
    if kind == "fungible":
        least = random.randint(2, 10**30)
        token = deploy_fungible(services, holder=own, amount=least + beyond)
    else:
        least = 2
        token = deploy_collection(services, holder=own, number=least + beyond)
    holding_policy(sponsor, token, least)

    if beyond < 0:
        with refused(NotHolding) as refusal:
            execute_sponsored(newcomer, new_call(), sponsor)
        assert refusal.value.status == 403
        assert (refusal.value.members["limit"], refusal.value.members["fits"]) == (str(least), token)
    else:
        execute_sponsored(newcomer, new_call(), sponsor)
        assert SponsoredCall.objects.get().user == newcomer


@pytest.mark.parametrize("rule", ["followed", "follower"])
def test_a_follow_counts_in_its_direction(
    services: Services, newcomer: User, new_call: NewCall, refused: Refused, rule: str
) -> None:
    own, other, sponsor = str(newcomer.profile_address), random_address(), make_sponsor()
    make_policy(sponsor, profiles=rule, counterpart=other)
    pair = (other, own) if rule == "followed" else (own, other)

    follow(services, follower=pair[1], followed=pair[0])
    with refused(NotHolding):
        execute_sponsored(newcomer, new_call(), sponsor)
    holdings._recent.clear()
    follow(services, follower=pair[0], followed=pair[1])

    execute_sponsored(newcomer, new_call(), sponsor)
    assert SponsoredCall.objects.count() == 1


def test_an_address_without_a_token_holds_nothing(
    newcomer: User, new_call: NewCall, refused: Refused
) -> None:
    sponsor = make_sponsor()
    holding_policy(sponsor, random_address(), 1)
    with refused(NotHolding):
        execute_sponsored(newcomer, new_call(), sponsor)


def test_while_the_chain_cannot_be_read_the_policy_does_not_fit_and_the_next_one_pays(
    newcomer: User, new_call: NewCall, refused: Refused, views: list[str]
) -> None:
    sponsor, call = make_sponsor(), new_call()
    holding_policy(sponsor, random_address(), 1)
    views.append("away")
    with refused(HoldingUnknown) as refusal:
        execute_sponsored(newcomer, call, sponsor)
    assert (refusal.value.status, refusal.value.retryable, refusal.value.retry_after) == (503, True, 10)

    open_to_all = make_policy(sponsor, position=1)
    execute_sponsored(newcomer, call, sponsor)
    assert SponsoredCall.objects.get().version == open_to_all


def test_the_chain_is_read_only_for_a_policy_that_fits_otherwise_and_once_for_a_while(
    services: Services, newcomer: User, new_call: NewCall, refused: Refused, views: list[str]
) -> None:
    sponsor, other = make_sponsor(), make_sponsor()
    make_policy(other)
    elsewhere = [{"contract": random_address(), "functions": []}]
    version = holding_policy(sponsor, random_address(), 1, targets=elsewhere)
    execute_sponsored(newcomer, new_call(channel=1), other)
    with refused(TargetNotSponsored):
        execute_sponsored(newcomer, new_call(channel=2), sponsor)
    assert views == []

    token = deploy_fungible(services, holder=str(newcomer.profile_address), amount=1)
    fitting = holding_policy(sponsor, token, 1, position=1)
    for channel in (3, 4):
        execute_sponsored(newcomer, new_call(channel=channel), sponsor)
    assert views == [token]
    assert SponsoredCall.objects.filter(version=fitting).count() == 2
    assert not SponsoredCall.objects.filter(version=version).exists()


def test_prepare_reads_the_chain_and_its_quote_binds_the_policy(
    services: Services, newcomer: User, profile: Profile
) -> None:
    sponsor = make_sponsor()
    token = deploy_fungible(services, holder=str(newcomer.profile_address), amount=secrets.randbelow(100) + 1)
    version = holding_policy(sponsor, token, 1)
    draft = Draft(
        set_data_payload(), controller=profile.controller.address, sponsor=SponsorChoice(sponsor.slug)
    )
    prepared = preparation.prepare(caller=caller_of(newcomer), draft=draft, now=timezone.now())
    assert prepared.refusals == ()
    assert prepared.quote is not None
    assert prepared.quote.sponsor_version == version
