"""Who acts for a sponsor: owners add and remove others, everyone can leave, and one owner stays."""

import random
from functools import partial

import pytest

from sponsors.errors import LastOwner
from sponsors.models import Member, Sponsor
from sponsors.services import members
from tests.factories import UserFactory, random_address
from tests.sponsors.api.callers import call, member_of
from tests.sponsors.sponsorships import make_sponsor
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def sponsor() -> Sponsor:
    return make_sponsor()


def path(sponsor: Sponsor, user: User | None = None) -> str:
    """Return the path of the members, or of one of them."""
    of_one = f"/{user.profile_address}" if user else ""
    return f"/api/sponsors/{sponsor.slug}/members{of_one}"


def roles(sponsor: Sponsor) -> dict[str | None, str]:
    """Return the role of each member by address."""
    return dict(Member.objects.filter(sponsor=sponsor).values_list("user__profile_address", "role"))


def test_an_owner_adds_others_by_address_and_changes_roles(sponsor: Sponsor) -> None:
    owner, newcomer = member_of(sponsor), UserFactory.create()
    sent = {"address": str(newcomer.profile_address).lower(), "role": "viewer"}
    response = call(owner, "put", path(sponsor), **sent)
    assert response.status == 200, response.body
    shown = [(one["address"], one["role"]) for one in response.body["members"]]
    assert shown == [(owner.profile_address, "owner"), (newcomer.profile_address, "viewer")]
    call(owner, "put", path(sponsor), **sent | {"role": "manager"})
    assert roles(sponsor)[str(newcomer.profile_address)] == "manager"
    [listed] = call(newcomer, "get", "/api/sponsors").body["sponsors"]
    assert (listed["name"], listed["displayName"], listed["role"]) == (sponsor.slug, sponsor.name, "manager")


@pytest.mark.parametrize("role", ["viewer", "manager"])
def test_others_than_owners_see_members_and_change_none(sponsor: Sponsor, role: str) -> None:
    owner, user = member_of(sponsor), member_of(sponsor, role)
    before = roles(sponsor)
    assert len(call(user, "get", path(sponsor)).body["members"]) == 2
    own = {"address": user.profile_address, "role": "owner"}
    for response in (
        call(user, "put", path(sponsor), **own),
        call(user, "delete", path(sponsor, owner)),
    ):
        assert (response.status, response.body["code"], response.body["needs"]) == (
            403,
            "permission-denied",
            "own",
        )
    assert roles(sponsor) == before


def test_a_non_member_learns_nothing_of_a_sponsor(sponsor: Sponsor) -> None:
    member_of(sponsor)
    stranger = member_of(make_sponsor())
    unknown = call(stranger, "get", "/api/sponsors/there-is-none/members")
    for method in ("get", "put"):
        response = call(stranger, method, path(sponsor))
        assert (response.status, response.body["detail"]) == (404, unknown.body["detail"])
    assert call(None, "get", path(sponsor)).status == 401


def test_every_member_can_leave_and_the_last_owner_stays(sponsor: Sponsor) -> None:
    owner, viewer = member_of(sponsor), member_of(sponsor, "viewer")
    assert call(viewer, "delete", path(sponsor, viewer)).status == 200
    assert call(viewer, "get", path(sponsor)).status == 404
    demoted = {"address": owner.profile_address, "role": "viewer"}
    for response in (
        call(owner, "delete", path(sponsor, owner)),
        call(owner, "put", path(sponsor), **demoted),
    ):
        assert (response.status, response.body["code"]) == (409, "sponsor-last-owner")
    assert roles(sponsor) == {str(owner.profile_address): "owner"}


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_user_without_an_open_account_cannot_be_added(sponsor: Sponsor, is_closed: bool) -> None:
    owner, address = member_of(sponsor), random_address()
    if is_closed:
        UserFactory.create(profile_address=address, is_active=False)
    before = roles(sponsor)
    response = call(owner, "put", path(sponsor), address=address, role="viewer")
    assert (response.status, response.body["code"]) == (404, "sponsor-member-unknown")
    assert roles(sponsor) == before


@pytest.mark.django_db(transaction=True)
def test_of_owners_who_leave_concurrently_one_stays(sponsor: Sponsor) -> None:
    owners = [member_of(sponsor) for _ in range(random.randint(3, 8))]
    leave = [
        partial(members.remove, member=members.of_address(sponsor, str(owner.profile_address)))
        for owner in owners
    ]
    refused = [outcome for outcome in at_once(leave) if outcome is not None]
    assert [type(refusal) for refusal in refused] == [LastOwner]
    assert list(roles(sponsor).values()) == ["owner"]
