"""A person opens a sponsor over HTTP, and its owner alone writes policies and signers within its budget."""

import json
import random
import secrets
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from pytest_django import Settings

from devstack.services.stack import Services
from gateway.common import clock
from sponsors.models import Member, Policy, PolicyVersion, Sponsor, VoucherSigner
from tests.database import rows_of
from tests.factories import UserFactory, random_address
from tests.sponsors.api.callers import call, member_of
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db


def _entries(first: int, count: int) -> str:
    functions = ({"type": "function", "name": f"f{one}", "inputs": []} for one in range(first, first + count))
    return json.dumps(list(functions))


def terms_stored() -> dict[str, Any]:
    return rows_of(Policy, PolicyVersion, VoucherSigner, LogEntry)


def opened(owner: User) -> str:
    """Open a sponsor; return its path in the API."""
    name = f"s-{secrets.token_hex(6)}"
    response = call(owner, "post", "/api/sponsors", name=name, displayName="My dApp")
    assert response.status == 200, response.body
    return f"/api/sponsors/{name}"


def test_a_person_opens_a_sponsor_and_sees_its_budget(settings: Settings) -> None:
    settings.SPONSOR_SELF_SERVICE_DAY_CREDITS = day = random.randint(1, 999)
    owner = UserFactory.create()
    offer = call(owner, "get", "/api/sponsors").body
    assert (offer["sponsors"], offer["selfService"]["isOn"], offer["selfService"]["dayCredits"]) == (
        [],
        True,
        day,
    )
    path = opened(owner)
    [listed] = call(owner, "get", "/api/sponsors").body["sponsors"]
    assert (listed["displayName"], listed["role"]) == ("My dApp", "owner")
    overview = call(owner, "get", f"{path}/overview").body
    assert overview["mayChangePolicies"]
    assert [(part["period"], part["limit"], part["used"]) for part in overview["budget"]] == [
        ("day", day, 0),
        ("month", settings.SPONSOR_SELF_SERVICE_MONTH_CREDITS, 0),
    ]


@pytest.mark.parametrize("name", ["", "ab", "-ab", "My-dApp", "a b", "ä-dapp", "a" * 41, "../x"])
def test_a_name_that_no_header_carries_well_opens_nothing(name: str) -> None:
    response = call(UserFactory.create(), "post", "/api/sponsors", name=name, displayName="x")
    assert (response.status, response.body["code"]) == (400, "invalid-request")
    assert not Sponsor.objects.exists()


def test_an_owner_writes_terms_with_names_of_functions_and_switches_the_policy() -> None:
    owner, contract = UserFactory.create(), random_address()
    path = opened(owner)
    cost, calls = random.randint(100, 999), random.randint(1, 9)
    targets = [{"contract": contract, "functions": ["follow", "mint(address to, uint256)", "0x760d9bba"]}]
    body = {"targets": targets, "profiles": "new", "newSince": clock.now().isoformat()}
    response = call(owner, "put", f"{path}/policies/first-calls", **body, callCredits=cost, userCalls=calls)
    assert response.status == 200, response.body
    [policy] = response.body["policies"]
    terms = policy["terms"]
    assert (policy["name"], terms["profiles"], terms["callCredits"], terms["userCalls"]) == (
        *("first-calls", "new"),
        *(cost, calls),
    )
    assert terms["targets"] == [
        {"contract": contract, "functions": ["0x4dbf27cc", "0x40c10f19", "0x760d9bba"]}
    ]
    version = PolicyVersion.objects.get()
    assert (version.created_by, version.number) == (owner, 1)
    response = call(owner, "put", f"{path}/policies/first-calls/state", isEnabled=False)
    assert not response.body["policies"][0]["isEnabled"]
    assert not Policy.objects.get().is_enabled


def test_an_owner_adds_and_removes_the_signer_of_vouchers() -> None:
    owner, address = UserFactory.create(), random_address()
    path = f"{opened(owner)}/signers"
    call(owner, "post", path, address=address.lower())
    [signer] = call(owner, "get", path).body["signers"]
    assert signer["address"] == address
    assert call(owner, "delete", f"{path}/{address}").body["signers"] == []
    assert VoucherSigner.objects.get().removed_at is not None
    assert call(owner, "delete", f"{path}/{address}").status == 404


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"callCredits": 0}, 400, "invalid-request"),
        ({"profiles": "verified"}, 400, "invalid-request"),
        ({"targets": [{"contract": "profile", "functions": ["frobnicate"]}]}, 400, "invalid-request"),
        ({"profiles": "new"}, 422, "sponsor-terms"),
        ({"windowCredits": 5}, 422, "sponsor-terms"),
        ({"targets": [{"contract": "profile"}] * 21}, 400, "invalid-request"),
        ({"targets": [{"contract": "profile", "functions": ["0x"] * 51}]}, 400, "invalid-request"),
        (
            {"targets": [{"contract": "profile", "functions": [_entries(0, 50), _entries(50, 1)]}]},
            400,
            "invalid-request",
        ),
        ({"profiles": "listed", "listed": [f"0x{one:040x}" for one in range(201)]}, 400, "invalid-request"),
    ],
)
def test_impossible_terms_store_nothing(change: dict[str, object], status: int, code: str) -> None:
    owner = UserFactory.create()
    path = opened(owner)
    before = terms_stored()
    response = call(owner, "put", f"{path}/policies/x", **({"callCredits": 5} | change))
    assert (response.status, response.body["code"]) == (status, code)
    assert terms_stored() == before


def test_a_person_changes_terms_and_signers_as_often_as_the_rate_allows(
    services: Services, settings: Settings
) -> None:
    settings.SPONSOR_TERMS_RATE = "2/day"
    owner, address = UserFactory.create(), random_address()
    path = opened(owner)
    assert call(owner, "put", f"{path}/policies/x", callCredits=5).status == 200
    assert call(owner, "post", f"{path}/signers", address=address).status == 200
    before = terms_stored()
    for method, what, body in (
        ("put", "policies/x", {"callCredits": 6}),
        ("put", "policies/x/state", {"isEnabled": False}),
        ("post", "signers", {"address": random_address()}),
        ("delete", f"signers/{address}", {}),
    ):
        assert call(owner, method, f"{path}/{what}", **body).status == 429
    assert call(owner, "get", f"{path}/signers").status == 200
    assert terms_stored() == before


@pytest.mark.parametrize("role", ["viewer", "manager"])
def test_other_members_change_no_policies(role: str) -> None:
    owner, other = UserFactory.create(), UserFactory.create()
    path = opened(owner)
    Member.objects.create(sponsor=Sponsor.objects.get(), user=other, role=role)
    before = terms_stored()
    for method, what, body in (
        ("put", "policies/x", {"callCredits": 5}),
        ("put", "policies/x/state", {"isEnabled": False}),
        ("post", "signers", {"address": random_address()}),
    ):
        assert call(other, method, f"{path}/{what}", **body).status == 403
    assert not call(other, "get", f"{path}/overview").body["mayChangePolicies"]
    assert terms_stored() == before


def test_an_owner_changes_nothing_of_another_sponsor() -> None:
    owner, other, address = UserFactory.create(), UserFactory.create(), random_address()
    path, theirs = opened(owner), opened(other)
    assert call(other, "put", f"{theirs}/policies/x", callCredits=5).status == 200
    assert call(other, "post", f"{theirs}/signers", address=address).status == 200
    before = terms_stored()
    assert call(owner, "get", f"{path}/signers").body["signers"] == []
    for method, what, body in (
        ("put", "policies/x/state", {"isEnabled": False}),
        ("delete", f"signers/{address}", {}),
    ):
        assert call(owner, method, f"{path}/{what}", **body).status == 404
        assert call(owner, method, f"{theirs}/{what}", **body).status == 404
    assert terms_stored() == before


def test_without_a_budget_an_owner_changes_no_policies() -> None:
    sponsor = make_sponsor()
    owner, policy = member_of(sponsor), make_policy(sponsor).policy
    before = terms_stored()
    response = call(owner, "put", f"/api/sponsors/{sponsor.slug}/policies/{policy.name}", callCredits=5)
    assert (response.status, response.body["code"]) == (409, "sponsor-staff-decide")
    assert terms_stored() == before
    assert call(owner, "get", f"/api/sponsors/{sponsor.slug}/overview").body["budget"] == []
