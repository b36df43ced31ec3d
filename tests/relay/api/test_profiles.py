"""Profiles on the wire: the two forms of LUKSO's relayer API, status, registration, and who may ask."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.models import ExpiringLot
from devstack.services.stack import Services
from devstack.world.profiles import ProfilePlan
from gateway.chain import lsp23
from gateway.chain.config import on_chain
from relay.models import ProfileCreation, RelayTransaction
from signer.deployments import RECEIVER_DELEGATE, addresses_of
from sponsors.models import ApiKey, Member, Sponsor
from sponsors.services import keys
from tests.factories import random_address
from tests.relay.api.conftest import ApiResponse, Wallet
from tests.relay.conftest import Settle
from tests.relay.creating import a_key, address_of, all_rows, for_profiles, profile_of
from tests.relay.signing import sign_call
from tests.relay.sponsoring import account_of, execute_sponsored
from tests.relay.two_chains import ForeignChain, foreign_chain
from tests.relay.workers import broadcast_all, track
from tests.sponsors.api.callers import call, member_of
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db
PATH = "/api/universal-profile"
REGISTER = f"{PATH}/register"


@pytest.fixture
def sponsor(relayers: object, trusted: None) -> Sponsor:
    """A sponsor that pays for new profiles."""
    sponsor = make_sponsor()
    for_profiles(sponsor)
    return sponsor


def server_of(sponsor: Sponsor, *scopes: str) -> Wallet:
    """Return the sponsor's server, with a key of these rights."""
    manager = member_of(sponsor, Member.Role.MANAGER)
    new = keys.create(
        sponsor=sponsor,
        name="server",
        scopes=scopes or ("create",),
        networks=(),
        actor=manager,
        now=timezone.now(),
    )
    return Wallet(new.text, "198.51.100.9")


@pytest.fixture
def server(sponsor: Sponsor) -> Wallet:
    """The sponsor's server, with a key that may create."""
    return server_of(sponsor)


def refused(server: Wallet, status: int, code: str, body: dict[str, Any], path: str = PATH) -> ApiResponse:
    """Send a request that is refused without a trace; return the problem."""
    before = all_rows()
    response = server.post(path, body)
    assert (response.status, response.body["code"]) == (status, code), response.body
    assert all_rows() == before
    return response


def test_a_server_creates_a_profile_and_follows_it_to_its_end(
    server: Wallet, sponsor: Sponsor, settle: Settle
) -> None:
    controller = address_of(a_key())
    created = server.post(PATH, {"lsp6ControllerAddress": [controller.lower()]})
    assert created.status == 200, created.body
    row = ProfileCreation.objects.get()
    assert row.api_key == ApiKey.objects.get(sponsor=sponsor)
    relayed = RelayTransaction.objects.get()
    held = account_of(sponsor).held
    at_home = {
        "chainId": row.chain_id,
        "status": "Pending",
        "transactionHash": relayed.transaction_hash,
        "failureCode": "",
        "credits": held,
        "paidBy": sponsor.slug,
    }
    assert created.body == {
        "universalProfileAddress": row.profile_address,
        "keyManagerAddress": row.key_manager_address,
        "status": "Pending",
        "transactionHash": relayed.transaction_hash,
        "statusPath": f"{PATH}/{row.profile_address}",
        "controllers": [
            {"address": controller, "permissions": "0x" + "7f3f7f".rjust(64, "0")},
            {"address": RECEIVER_DELEGATE, "permissions": "0x" + f"{0x20080:064x}"},
        ],
        "chains": [at_home],
        "firstCredits": None,
    }
    assert settle() == 1
    shown = server.send("get", created.body["statusPath"].lower())
    relayed.refresh_from_db()
    assert shown.body == created.body | {
        "status": "Success",
        "chains": [at_home | {"status": "Success", "credits": relayed.real_cost}],
    }


def test_the_form_with_salt_and_data_deploys_exactly_them(server: Wallet) -> None:
    new = lsp23.profile_of_controllers(
        controllers=[address_of(a_key())], metadata=b"", salt=secrets.token_bytes(32)
    )
    body = {
        "salt": "0x" + new.deployment.salt.hex(),
        "postDeploymentCallData": "0x" + new.deployment.module_data.hex(),
    }
    created = server.post(PATH, body)
    assert created.status == 200, created.body
    assert created.body["universalProfileAddress"] == addresses_of(new.deployment).profile
    assert server.post(PATH, body).body == created.body


def test_an_idempotency_key_names_one_profile(server: Wallet, sponsor: Sponsor) -> None:
    body = {"lsp6ControllerAddress": [address_of(a_key())]}
    first = server.post(PATH, body, **{"Idempotency-Key": "a"})
    assert server.post(PATH, body, **{"Idempotency-Key": "a"}).body == first.body
    second = server.post(PATH, body, **{"Idempotency-Key": "b"})
    assert second.body["universalProfileAddress"] != first.body["universalProfileAddress"]
    before = all_rows()
    other = {"lsp6ControllerAddress": [address_of(a_key())]}
    clash = server.post(PATH, other, **{"Idempotency-Key": "a"})
    assert (clash.status, clash.body["code"]) == (409, "creation-key-used")
    assert all_rows() == before


def test_what_contradicts_itself_is_refused_with_the_member(server: Wallet) -> None:
    salt, one = "0x" + "11" * 32, [random_address()]
    contradictory: tuple[dict[str, Any], ...] = (
        {},
        {"salt": salt},
        {"lsp6ControllerAddress": one, "salt": salt, "postDeploymentCallData": "0x00"},
        {"salt": salt, "postDeploymentCallData": "0x00", "lsp3Profile": "0x00"},
        {"lsp6ControllerAddress": []},
        {"lsp6ControllerAddress": ["0x12"]},
        {"lsp6ControllerAddress": [random_address() for _ in range(11)]},
    )
    for body in contradictory:
        refused(server, 400, "invalid-request", body)
    refused(server, 422, "profile-data-refused", {"salt": salt, "postDeploymentCallData": "0x00"})
    twice = refused(server, 422, "profile-data-refused", {"lsp6ControllerAddress": one * 2})
    assert twice.body["reason"] == "repeated-key"
    metadata = refused(
        server, 422, "profile-data-refused", {"lsp6ControllerAddress": one, "lsp3Profile": "0x1234"}
    )
    assert metadata.body["reason"] == "metadata"


@pytest.fixture
def elsewhere(services: Services, settings: Settings, relayers: object) -> Iterator[ForeignChain]:
    """A chain besides home without any profile."""
    with foreign_chain(services, settings) as chain:
        yield chain


def test_further_chains_get_the_same_address_each_by_a_policy_of_its_own(
    server: Wallet, sponsor: Sponsor, services: Services, elsewhere: ForeignChain, settle: Settle
) -> None:
    body = {"lsp6ControllerAddress": [random_address()], "chainIds": [elsewhere.id, services.chain_id]}
    refused(server, 404, "chain-unknown", body | {"chainIds": [987654321]})
    first = server.post(PATH, body).body
    shown = [(one["chainId"], one["status"], one["failureCode"]) for one in first["chains"]]
    assert shown == [(services.chain_id, "Pending", ""), (elsewhere.id, "Cancelled", "sponsor-chain")]

    for_profiles(sponsor, chain_id=elsewhere.id)
    second = server.post(PATH, body).body
    assert second["universalProfileAddress"] == first["universalProfileAddress"]
    assert [one["status"] for one in second["chains"]] == ["Pending", "Pending"]
    assert settle() == 1
    with on_chain(elsewhere.id):
        broadcast_all()
        elsewhere.mine(2)
        assert track() == 1
    ended = server.send("get", first["statusPath"]).body["chains"]
    assert [(one["chainId"], one["status"]) for one in ended] == [
        (services.chain_id, "Success"),
        (elsewhere.id, "Success"),
    ]
    costs = dict(RelayTransaction.objects.values_list("chain_id", "real_cost"))
    assert {one["chainId"]: one["credits"] for one in ended} == costs
    assert account_of(sponsor).balance == 100_000 - sum(costs.values())
    assert elsewhere.probe_code(address=first["universalProfileAddress"])
    figures = call(member_of(sponsor, "viewer"), "get", f"/api/sponsors/{sponsor.slug}/profiles").body
    assert (figures["created"], figures["credits"]) == (1, sum(costs.values()))


@pytest.mark.parametrize("scope", ["read", "simulate", "manage"])
def test_a_key_without_the_right_creates_registers_and_reads_nothing(sponsor: Sponsor, scope: str) -> None:
    other = server_of(sponsor, scope)
    needs = refused(other, 403, "permission-denied", {"lsp6ControllerAddress": [random_address()]})
    assert needs.body["needs"] == "create"
    refused(other, 403, "permission-denied", {"universalProfileAddress": random_address()}, REGISTER)
    assert other.send("get", f"{PATH}/{random_address()}").status == 403


def test_neither_a_user_nor_a_stranger_creates_a_profile(sponsor: Sponsor, wallet: Wallet) -> None:
    for caller in (wallet, Wallet(None, "198.51.100.7"), Wallet("sponsor_unknown", "198.51.100.7")):
        before = all_rows()
        assert caller.post(PATH, {"lsp6ControllerAddress": [random_address()]}).status == 401
        assert all_rows() == before


def test_a_sponsor_reads_only_profiles_that_it_requested(server: Wallet, sponsor: Sponsor) -> None:
    other = make_sponsor()
    created = server.post(PATH, {"lsp6ControllerAddress": [random_address()]})
    path = created.body["statusPath"]
    assert server.send("get", path).status == 200
    unknown = server_of(other).send("get", path)
    assert (unknown.status, unknown.body["code"]) == (404, "profile-not-requested")


def test_an_existing_profile_gets_an_account_that_can_do_nothing_by_itself(
    server: Wallet, sponsor: Sponsor, services: Services, settings: Settings
) -> None:
    profile = services.world.create_profiles(ProfilePlan())[0]
    registered = server.post(REGISTER, {"universalProfileAddress": profile.profile_address})
    assert registered.status == 200, registered.body
    assert (registered.body["status"], registered.body["controllers"]) == ("ExecutedExternally", [])
    user = User.objects.get(profile_address=profile.profile_address)
    assert (user.credit_account.balance, user.is_active) == (0, True)
    assert ProfileCreation.objects.get().api_key == ApiKey.objects.get(sponsor=sponsor)
    again = server.post(REGISTER, {"universalProfileAddress": profile.profile_address})
    assert again.body == registered.body
    assert account_of(sponsor).balance == 100_000

    settings.SPONSOR_REGISTRATIONS_PER_DAY = 1
    other = services.world.create_profiles(ProfilePlan())[0]
    limit = refused(
        server, 429, "registrations-used", {"universalProfileAddress": other.profile_address}, REGISTER
    )
    assert 0 < int(limit.headers["Retry-After"]) <= 86_400


def test_what_is_no_profile_is_not_registered(server: Wallet) -> None:
    refused(server, 422, "profile-not-there", {"universalProfileAddress": random_address()}, REGISTER)


def test_members_see_how_many_profiles_there_are_what_they_cost_and_who_has_acted(
    server: Wallet, sponsor: Sponsor, services: Services, settle: Settle
) -> None:
    key = a_key()
    for controller in (key, a_key()):
        assert server.post(PATH, {"lsp6ControllerAddress": [address_of(controller)]}).status == 200
    viewer, path = member_of(sponsor, "viewer"), f"/api/sponsors/{sponsor.slug}/profiles"
    assert call(viewer, "get", path).body == {
        "created": 0,
        "registered": 0,
        "inProgress": 2,
        "failed": 0,
        "credits": 0,
        "firstCredits": 0,
        "acted": 0,
    }
    settle()
    row = ProfileCreation.objects.earliest("pk")
    make_policy(sponsor)
    execute_sponsored(row.user, sign_call(services=services, profile=profile_of(row, key)), sponsor)
    settle()
    figures = call(viewer, "get", path).body
    cost = sum(RelayTransaction.objects.filter(deploys_profile=True).values_list("real_cost", flat=True))
    assert (figures["created"], figures["acted"], figures["credits"]) == (2, 1, cost)
    assert call(viewer, "get", path, days=91).status == 400


def test_first_credits_are_told_from_the_request_until_the_profile_has_them(
    server: Wallet, sponsor: Sponsor, settle: Settle
) -> None:
    without = server.post(PATH, {"lsp6ControllerAddress": [random_address()]}).body
    assert without["firstCredits"] is None
    gift, days = secrets.randbelow(9_000) + 1, secrets.randbelow(365) + 1
    other = make_sponsor()
    for_profiles(other, first_credits=gift, first_days=days)
    giving = server_of(other)
    viewer = member_of(other, "viewer")
    asked = giving.post(PATH, {"lsp6ControllerAddress": [random_address()]}).body
    assert asked["firstCredits"] == {"credits": gift, "days": days, "expiresAt": None}
    figures = call(viewer, "get", f"/api/sponsors/{other.slug}/profiles").body
    assert (figures["credits"], figures["firstCredits"]) == (0, 0)

    assert settle() == 2
    given = giving.send("get", asked["statusPath"]).body["firstCredits"]
    lot = ExpiringLot.objects.get()
    assert given == {
        "credits": gift,
        "days": days,
        "expiresAt": lot.expires_at.isoformat().replace("+00:00", "Z"),
    }
    figures = call(viewer, "get", f"/api/sponsors/{other.slug}/profiles").body
    cost = RelayTransaction.objects.get(profile_address=asked["universalProfileAddress"]).real_cost
    assert (figures["credits"], figures["firstCredits"]) == (cost, gift)
