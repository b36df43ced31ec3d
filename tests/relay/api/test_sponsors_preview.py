"""A sponsor previews terms over its own calls, and of the calls of strangers learns only what the chain shows."""

import random
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from devstack.world.profiles import Profile
from gateway.chain.config import on_chain
from gateway.chain.lsp25 import RelayCall
from relay.models import Attempt, RelayTransaction
from relay.pricing import credits_of
from relay.queries.prices import current_price
from sponsors.models import PolicyVersion, RefusedRequest, Sponsor
from tests.factories import random_address
from tests.relay.api.conftest import ApiResponse, Wallet, execute_body, wallet_of
from tests.relay.conftest import Settle
from tests.relay.signing import execute_payload
from tests.relay.sponsoring import all_rows
from tests.relay.two_chains import ForeignChain
from tests.relay.workers import broadcast_all, track
from tests.sponsors.api.callers import member_of
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db
EXECUTE = "/api/relay/execute"
NewCall = Callable[..., RelayCall]
NOTHING = {"calls": 0, "paid": 0, "credits": 0, "undecided": 0, "assumed": False, "refusals": []}


@pytest.fixture
def user(profile: Profile, open_account: Callable[..., User]) -> User:
    return open_account(profile, credits=1_000_000)


def previewed(sponsor: Sponsor, role: str = "viewer", **terms: Any) -> ApiResponse:
    member = wallet_of(member_of(sponsor, role))
    return member.post(f"/api/sponsors/{sponsor.slug}/preview", {"callCredits": 10_000, **terms})


def sent(wallet: Wallet, call: RelayCall, sponsor: Sponsor | None = None) -> RelayTransaction:
    """Send a call, which is accepted."""
    response = wallet.post(
        EXECUTE, execute_body(call), **({"Relay-Sponsor": sponsor.slug} if sponsor else {})
    )
    assert response.status == 200, response.body
    return RelayTransaction.objects.latest("pk")


def test_a_preview_is_of_the_calls_that_the_sponsor_paid_or_refused_and_stores_nothing(
    wallet: Wallet, new_call: NewCall, settle: Settle
) -> None:
    sponsor, contract, other = make_sponsor(), random_address(), random_address()
    paying = make_policy(sponsor, targets=[{"contract": contract, "functions": []}])
    sent(wallet, new_call(payload=execute_payload(contract)), sponsor)
    assert settle() == 1
    cost = RelayTransaction.objects.get().real_cost
    refused = wallet.post(
        EXECUTE, execute_body(new_call(payload=execute_payload(other))), **{"Relay-Sponsor": sponsor.slug}
    )
    assert refused.body["code"] == "sponsor-target"
    highest = RefusedRequest.objects.get().credits
    # Calls that concern neither the sponsor nor its own calls.
    sent(wallet, new_call(channel=1, payload=execute_payload(contract)))
    before = all_rows(), PolicyVersion.objects.count()

    everything = previewed(sponsor).body
    assert everything == NOTHING | {"of": "own", "calls": 2, "paid": 2, "credits": cost + highest}
    same = previewed(sponsor, targets=paying.targets).body
    refusals = [{"rule": "sponsor-target", "calls": 1}]
    assert same == NOTHING | {"of": "own", "calls": 2, "paid": 1, "credits": cost, "refusals": refusals}
    # Terms that begin now are applied as if they had begun with the first of these calls.
    begun = previewed(sponsor, startsAt=(timezone.now() + timedelta(days=1)).isoformat()).body
    assert begun["paid"] == 2
    RelayTransaction.objects.filter(hold__sponsored__version=paying).update(deploys_profile=True)
    assert previewed(sponsor).body["refusals"] == [{"rule": "sponsor-purpose", "calls": 1}]
    owner = wallet_of(member_of(sponsor))
    listed = owner.send("get", f"/api/sponsors/{sponsor.slug}/calls", data={"kind": "paid"}).body["calls"]
    assert listed[0]["actions"] == [{"contract": "new-profile", "function": "0x"}]
    RelayTransaction.objects.update(deploys_profile=False)
    vouched = previewed(sponsor, profiles="vouched").body
    assert (vouched["paid"], vouched["assumed"]) == (2, True)
    assert (all_rows(), PolicyVersion.objects.count()) == before


def test_of_a_strangers_call_only_what_the_chain_shows_decides(
    wallet: Wallet, new_call: NewCall, settle: Settle, user: User
) -> None:
    sponsor, contract = make_sponsor(), random_address()
    targets = [{"contract": contract, "functions": []}]
    elsewhere = make_sponsor()
    make_policy(elsewhere, targets=[{"contract": contract, "functions": []}])
    sent(wallet, new_call(channel=1, payload=execute_payload(contract)), elsewhere)
    sent(wallet, new_call(channel=2, payload=execute_payload(random_address())))
    named = {"Relay-Sponsor": elsewhere.slug}
    other = random_address()
    wallet.post(EXECUTE, execute_body(new_call(channel=3, payload=execute_payload(other))), **named)
    assert RefusedRequest.objects.exists()
    # What is not executed yet, or was refused, is not on the chain.
    assert previewed(sponsor, targets=targets).body == NOTHING | {"of": "public"}
    assert settle() == 2

    attempt = Attempt.objects.get(relay_transaction=RelayTransaction.objects.earliest("pk"))
    price = current_price().credit_wei
    spent = credits_of(
        int(attempt.gas_used or 0) * int(attempt.effective_gas_price_wei or 0), credit_wei=price
    )
    # Neither what was charged nor what was held is used: both can be those of a quote.
    RelayTransaction.objects.update(real_cost=1, expected_cost=1)
    paid = NOTHING | {"of": "public", "calls": 1, "paid": 1, "credits": spent}
    assert previewed(sponsor, targets=targets).body == paid
    assert previewed(sponsor, targets=targets, profiles="listed", listed=[user.profile_address]).body == paid
    both = [*targets, {"contract": other, "functions": []}]
    assert previewed(sponsor, targets=both).body == paid
    # When the stranger signed in here first cannot be found out by halving the time.
    for since in (datetime(2020, 1, 1, tzinfo=UTC), timezone.now()):
        new = previewed(sponsor, targets=targets, profiles="new", newSince=since.isoformat()).body
        assert new == NOTHING | {"of": "public", "calls": 1, "undecided": 1}
    assert previewed(sponsor).body == NOTHING | {"of": "public"}


def test_a_preview_refuses_terms_that_contradict_each_other_and_people_who_are_no_members(
    wallet: Wallet,
) -> None:
    sponsor = make_sponsor()
    for wrong in (
        {"profiles": "new"},
        {"profiles": "holding"},
        {"windowCredits": random.randint(1, 99)},
    ):
        response = previewed(sponsor, **wrong)
        assert (response.status, response.body["code"]) == (422, "sponsor-terms"), response.body
    assert previewed(sponsor, callCredits=0).status == 400
    stranger = wallet.post(f"/api/sponsors/{sponsor.slug}/preview", {"callCredits": 1})
    assert stranger.status == 404


def test_the_simulator_takes_the_hash_of_an_executed_call_of_anyone(
    wallet: Wallet, new_call: NewCall, settle: Settle
) -> None:
    sponsor, contract = make_sponsor(), random_address()
    viewer = wallet_of(member_of(sponsor, "viewer"))

    def simulated(**body: Any) -> ApiResponse:
        return viewer.post(f"/api/sponsors/{sponsor.slug}/simulate", body)

    call = sent(wallet, new_call(payload=execute_payload(contract)))
    # Before it is on the chain, its hash tells a stranger nothing.
    assert simulated(transactionHash=call.transaction_hash).status == 404
    assert settle() == 1
    attempt = Attempt.objects.get()
    highest = credits_of(
        attempt.gas_limit * int(attempt.max_fee_per_gas_wei), credit_wei=current_price().credit_wei
    )
    make_policy(sponsor, targets=[{"contract": random_address(), "functions": []}])
    policy = make_policy(sponsor, position=1, targets=[{"contract": contract, "functions": ["0x"]}]).policy
    before = all_rows()
    answer = simulated(transactionHash=call.transaction_hash.upper().replace("X", "x")).body
    assert (answer["policy"], answer["sponsorCredits"], answer["userCredits"]) == (policy.name, highest, 0)
    assert [refusal["code"] for refusal in answer["refusals"]] == ["sponsor-target"]
    assert all_rows() == before

    hash_ = call.transaction_hash
    assert simulated(transactionHash="0x" + secrets.token_hex(32)).status == 404
    assert simulated(transactionHash=hash_, credits=1).status == 400
    assert simulated(credits=1, actions=[{"contract": contract}]).status == 400
    RelayTransaction.objects.update(deploys_profile=True)
    assert simulated(transactionHash=hash_).status == 404
    RelayTransaction.objects.update(deploys_profile=False, payload=b"")
    assert simulated(transactionHash=hash_).status == 404


def test_calls_of_another_chain_are_previewed_simulated_and_listed_as_its_own(
    wallet: Wallet, profile: Profile, foreign: ForeignChain
) -> None:
    contract, home_alone, sponsor = random_address(), make_sponsor(), make_sponsor()
    targets = [{"contract": contract, "functions": []}]
    make_policy(home_alone)
    make_policy(sponsor, chain_id=foreign.id)
    body = execute_body(foreign.sign(profile, payload=execute_payload(contract))) | {"chainId": foreign.id}
    refused = wallet.post(EXECUTE, body, **{"Relay-Sponsor": home_alone.slug})
    assert refused.body["code"] == "sponsor-chain"
    paid = wallet.post(EXECUTE, body, **{"Relay-Sponsor": sponsor.slug})
    assert paid.status == 200, paid.body
    with on_chain(foreign.id):
        broadcast_all()
        foreign.mine(2)
        assert track() == 1
    hash_ = RelayTransaction.objects.get().transaction_hash
    for one in (home_alone, sponsor):
        owner = wallet_of(member_of(one))
        [row] = owner.send("get", f"/api/sponsors/{one.slug}/calls").body["calls"]
        assert (row["chainId"], row["transactionHash"]) == (foreign.id, hash_ if one == sponsor else None)
    assert previewed(sponsor).body["refusals"] == [{"rule": "sponsor-chain", "calls": 1}]
    assert previewed(sponsor, chainId=foreign.id).body["paid"] == 1
    other = make_sponsor()
    assert previewed(other, targets=targets).body["calls"] == 0
    assert previewed(other, targets=targets, chainId=foreign.id).body["paid"] == 1
    make_policy(other, chain_id=foreign.id)
    viewer = wallet_of(member_of(other, "viewer"))
    answer = viewer.post(f"/api/sponsors/{other.slug}/simulate", {"transactionHash": hash_})
    assert answer.body["code"] is None, answer.body
