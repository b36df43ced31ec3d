"""API keys of a sponsor: shown once, scoped, bound to networks, replaced with a day to change over, revoked at once."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sponsors.models import ApiKey, Member, Sponsor
from sponsors.rules.rights import SCOPES
from sponsors.services import keys, members
from tests.factories import random_address
from tests.relay.api.conftest import ApiResponse, Wallet, wallet_of
from tests.sponsors.api.callers import call, member_of
from tests.sponsors.sponsorships import make_sponsor
from tests.staff import browser_of, confirm, member
from users.models import User
from users.services import bans

pytestmark = pytest.mark.django_db
ADDRESS = "198.51.100.7"


@pytest.fixture
def sponsor() -> Sponsor:
    return make_sponsor()


@pytest.fixture
def manager(sponsor: Sponsor) -> User:
    return member_of(sponsor, "manager")


def path(sponsor: Sponsor, name: str = "keys") -> str:
    return f"/api/sponsors/{sponsor.slug}/{name}"


def made(manager: User, sponsor: Sponsor, *scopes: str, **values: Any) -> dict[str, Any]:
    """Make a key with these scopes; return the response."""
    body = {"name": "server", "scopes": list(scopes or ("read",)), **values}
    response = call(manager, "post", path(sponsor), **body)
    assert response.status == 200, response.body
    return response.body


def with_key(text: str, where: str, method: str = "get", **body: Any) -> ApiResponse:
    """Send a request with a key."""
    options: dict[str, Any] = {"data": body, "content_type": "application/json"} if body else {}
    return Wallet(text, ADDRESS).send(method, where, **options)


def test_a_key_is_shown_once_and_only_its_hash_is_stored(sponsor: Sponsor, manager: User) -> None:
    new = made(manager, sponsor)
    text = new["secret"]
    assert text.startswith("sponsor_")
    assert text.endswith(new["key"]["hint"])
    assert with_key(text, path(sponsor, "overview")).body["rights"] == ["read"]
    [row] = ApiKey.objects.values()
    assert text not in str(row)
    listed = call(manager, "get", path(sponsor))
    assert text not in str(listed.body)
    assert [one["name"] for one in listed.body["keys"]] == ["server"]


def test_a_key_does_what_its_scopes_allow_and_never_makes_keys_or_members(
    sponsor: Sponsor, manager: User
) -> None:
    reader, all_of_them = made(manager, sponsor)["secret"], made(manager, sponsor, *SCOPES)["secret"]
    asked = {"profile": random_address(), "credits": 1, "actions": [{"contract": "profile"}]}
    refused = with_key(reader, path(sponsor, "simulate"), "post", **asked)
    assert (refused.status, refused.body["needs"]) == (403, "simulate")
    assert with_key(all_of_them, path(sponsor, "simulate"), "post", **asked).status == 200
    number = ApiKey.objects.count()
    for method, name, body in (
        ("post", "keys", {"name": "another", "scopes": ["read"]}),
        ("post", f"keys/{ApiKey.objects.latest('pk').pk}/rotate", {}),
        ("delete", f"keys/{ApiKey.objects.latest('pk').pk}", {}),
        ("put", "members", {"address": manager.profile_address, "role": "owner"}),
        ("delete", f"members/{manager.profile_address}", {}),
    ):
        assert with_key(all_of_them, path(sponsor, name), method, **body).status == 403, name
    assert (ApiKey.objects.count(), ApiKey.objects.filter(revoked_at=None).count()) == (number, number)
    assert manager.memberships.get().role == "manager"


def test_a_key_opens_no_other_sponsor_and_no_other_endpoint(sponsor: Sponsor, manager: User) -> None:
    text = made(manager, sponsor, *SCOPES)["secret"]
    assert with_key(text, path(make_sponsor(), "overview")).status == 404
    for where in ("/api/sponsors", "/api/user/account"):
        assert with_key(text, where).status == 401


def test_a_key_is_accepted_from_its_networks_alone(sponsor: Sponsor, manager: User) -> None:
    near = made(manager, sponsor, networks=["198.51.100.0/24", "2001:db8::/32"])["secret"]
    far = made(manager, sponsor, networks=["203.0.113.9"])["secret"]
    assert with_key(near, path(sponsor, "overview")).status == 200
    refused = with_key(far, path(sponsor, "overview"))
    assert (refused.status, refused.body["code"], refused.body["address"]) == (
        403,
        "sponsor-key-network",
        ADDRESS,
    )
    assert ApiKey.objects.get(networks=["203.0.113.9"]).last_used_at is None


@pytest.mark.parametrize("network", ["0.0.0.0/0", "192.0.2.1/24", "nowhere"])
def test_an_invalid_network_range_is_refused(sponsor: Sponsor, manager: User, network: str) -> None:
    body = {"name": "server", "scopes": ["read"], "networks": [network]}
    assert call(manager, "post", path(sponsor), **body).status == 400
    assert not ApiKey.objects.exists()


def test_a_replaced_key_works_for_a_day_and_a_revoked_one_not_at_all(sponsor: Sponsor, manager: User) -> None:
    old = made(manager, sponsor, "read", "simulate", networks=["198.51.100.0/24"])
    response = call(manager, "post", path(sponsor, f"keys/{old['key']['key']}/rotate"))
    new = response.body
    same = ("name", "scopes", "networks")
    assert [new["key"][name] for name in same] == [old["key"][name] for name in same]
    for each in (old, new):
        assert with_key(each["secret"], path(sponsor, "overview")).status == 200
    row = ApiKey.objects.get(pk=old["key"]["key"])
    assert row.expires_at is not None
    assert timedelta(hours=23) < row.expires_at - timezone.now() <= keys.OVERLAP

    ApiKey.objects.filter(pk=row.pk).update(expires_at=timezone.now())
    assert call(manager, "delete", path(sponsor, f"keys/{new['key']['key']}")).body == {"keys": []}
    for each in (old, new):
        refused = with_key(each["secret"], path(sponsor, "overview"))
        assert (refused.status, refused.body["code"]) == (401, "sponsor-key")


def test_the_last_use_is_written_once_an_hour(sponsor: Sponsor, manager: User) -> None:
    text = made(manager, sponsor)["secret"]
    moment = timezone.now()
    for minutes, seen in ((0, 0), (59, 0), (61, 61), (100, 61)):
        keys.used(text=text, address=ADDRESS, now=moment + timedelta(minutes=minutes))
        assert ApiKey.objects.get().last_used_at == moment + timedelta(minutes=seen)


def test_a_sponsor_has_a_bounded_number_of_keys_and_viewers_make_none(
    sponsor: Sponsor, manager: User
) -> None:
    body = {"name": "server", "scopes": ["read"]}
    viewer = member_of(sponsor, "viewer")
    assert call(viewer, "post", path(sponsor), **body).status == 403
    for _ in range(keys.MOST_KEYS):
        keys.create(
            sponsor=sponsor, name="x", scopes=["read"], networks=[], actor=manager, now=timezone.now()
        )
    refused = call(manager, "post", path(sponsor), **body)
    assert (refused.status, refused.body["code"]) == (409, "sponsor-too-many-keys")
    assert ApiKey.objects.count() == keys.MOST_KEYS


def test_staff_revoke_a_leaked_key_at_once(sponsor: Sponsor, manager: User) -> None:
    text = made(manager, sponsor)["secret"]
    role = random.choice(["finance", "operations"])
    confirm(browser_of(member(role)), "sponsors_apikey", "revoke_key", ApiKey.objects.get())
    assert with_key(text, path(sponsor, "overview")).status == 401


def remove_by_api(owner: User, leaving: User, sponsor: Sponsor) -> None:
    call(owner, "delete", path(sponsor, f"members/{leaving.profile_address}"))


def remove_by_staff(owner: User, leaving: User, sponsor: Sponsor) -> None:
    row = Member.objects.get(sponsor=sponsor, user=leaving)
    confirm(browser_of(member("finance")), "sponsors_member", "remove_member", row)


def leave(owner: User, leaving: User, sponsor: Sponsor) -> None:
    call(leaving, "delete", path(sponsor, f"members/{leaving.profile_address}"))


def erase(owner: User, leaving: User, sponsor: Sponsor) -> None:
    members.forget(leaving)


@pytest.mark.parametrize("end", [remove_by_api, remove_by_staff, leave, erase])
def test_a_members_keys_and_webhooks_end_with_the_membership(
    sponsor: Sponsor, manager: User, settings: Any, end: Callable[[User, User, Sponsor], None]
) -> None:
    settings.WEBHOOK_SECRET_KEYS = ["0" * 32]
    owner, other = member_of(sponsor), make_sponsor()
    Member.objects.create(sponsor=other, user=manager, role="manager")
    theirs = made(manager, sponsor, "read", "manage")["secret"]
    of_owner, elsewhere = made(owner, sponsor)["secret"], made(manager, other)["secret"]
    webhook = {"url": "https://receiver.example/hooks", "events": ["sponsor.low"]}
    assert with_key(theirs, path(sponsor, "webhooks"), "post", **webhook).status == 200
    assert call(owner, "post", path(sponsor, "webhooks"), **webhook).status == 200
    assert with_key(theirs, path(sponsor, "overview")).status == 200

    end(owner, manager, sponsor)
    for method, where, body in (
        ("get", "overview", {}),
        ("put", "alarm", {"credits": 5}),
        ("post", "webhooks", webhook),
    ):
        refused = with_key(theirs, path(sponsor, where), method, **body)
        assert (refused.status, refused.body["code"]) == (401, "sponsor-key")
    sponsor.refresh_from_db()
    assert sponsor.alarm_credits is None
    assert with_key(of_owner, path(sponsor, "overview")).status == 200
    assert with_key(elsewhere, path(other, "overview")).status == (401 if end is erase else 200)
    shown = call(owner, "get", path(sponsor, "webhooks")).body["webhooks"]
    assert [row["isEnabled"] for row in shown] == [False, True]

    # Somebody who comes back begins without them.
    members.put(sponsor=sponsor, profile_address=str(manager.profile_address), role="manager")
    assert with_key(theirs, path(sponsor, "overview")).status == 401


def test_a_key_does_no_more_than_its_maker_may_do_now(sponsor: Sponsor, manager: User) -> None:
    text = made(manager, sponsor, "read", "manage")["secret"]
    members.put(sponsor=sponsor, profile_address=str(manager.profile_address), role="viewer")
    assert with_key(text, path(sponsor, "overview")).body["rights"] == ["read"]
    assert with_key(text, path(sponsor, "alarm"), "put", credits=5).status == 403
    User.objects.filter(pk=manager.pk).update(is_active=False)
    assert with_key(text, path(sponsor, "overview")).status == 401


def test_the_list_names_who_made_a_key_and_whoever_replaces_it_takes_it_over(
    sponsor: Sponsor, manager: User
) -> None:
    owner, new = member_of(sponsor), made(manager, sponsor)
    assert new["key"]["createdBy"] == manager.profile_address
    replaced = call(owner, "post", path(sponsor, f"keys/{new['key']['key']}/rotate")).body
    rows = call(owner, "get", path(sponsor)).body["keys"]
    assert [row["createdBy"] for row in rows] == [manager.profile_address, owner.profile_address]
    assert [row["lastUsedAt"] for row in rows] == [None, None]

    call(owner, "delete", path(sponsor, f"members/{manager.profile_address}"))
    assert with_key(replaced["secret"], path(sponsor, "overview")).status == 200
    [row] = call(owner, "get", path(sponsor)).body["keys"]
    assert (row["createdBy"], row["lastUsedAt"] is None) == (owner.profile_address, False)
    page = browser_of(member("operations")).get("/admin/sponsors/apikey/").content.decode()
    assert str(owner) in page


def test_a_banned_member_and_the_members_keys_are_refused(sponsor: Sponsor, manager: User) -> None:
    text = made(manager, sponsor, "read")["secret"]
    wallet = wallet_of(manager)
    bans.ban(user=manager, actor=member("support"), reason="abuse", now=timezone.now())
    assert wallet.send("get", path(sponsor, "overview")).body["code"] == "account-banned"
    assert with_key(text, path(sponsor, "overview")).body["code"] == "sponsor-key"
    bans.lift(user=manager, actor=member("support"), now=timezone.now())
    assert with_key(text, path(sponsor, "overview")).status == 200
