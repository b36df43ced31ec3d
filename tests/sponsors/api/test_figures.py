"""What members ask of a sponsor without any call: terms, the simulator, and queries that cannot be meant."""

import random
import secrets

import pytest
from django.utils import timezone

from credits.models import CreditAccount, CreditHold
from sponsors.models import RefusalCount, Sponsor, SponsoredCall, Usage
from sponsors.queries.figures import user_reference
from sponsors.services import refusals
from tests.database import rows_of
from tests.factories import UserFactory, random_address
from tests.sponsors.api.callers import call, member_of
from tests.sponsors.sponsorships import make_policy, make_sponsor, new_version
from users.models import User

pytestmark = pytest.mark.django_db
_COUNTED = (CreditAccount, CreditHold, SponsoredCall, Usage, RefusalCount)


@pytest.fixture
def sponsor() -> Sponsor:
    return make_sponsor()


@pytest.fixture
def viewer(sponsor: Sponsor) -> User:
    return member_of(sponsor, "viewer")


def path(sponsor: Sponsor, name: str) -> str:
    return f"/api/sponsors/{sponsor.slug}/{name}"


def test_policies_are_listed_in_order_with_their_newest_terms(sponsor: Sponsor, viewer: User) -> None:
    second = make_policy(sponsor, position=2).policy
    token, balance = random_address(), 10**30 + random.randrange(10**9)
    first = make_policy(
        sponsor,
        position=1,
        window_seconds=3_600,
        window_credits=70,
        profiles="holding",
        counterpart=token,
        least_balance=balance,
    ).policy
    contract, limit = random_address(), random.randint(100, 10_000)
    new_version(second, targets=[{"contract": contract, "functions": ["0x760d9bba"]}], user_calls=limit)
    make_policy(make_sponsor())
    shown = call(viewer, "get", path(sponsor, "policies")).body["policies"]
    assert [one["name"] for one in shown] == [first.name, second.name]
    assert (shown[0]["terms"]["windowSeconds"], shown[0]["use"]["windowCredits"]) == (3_600, 0)
    assert shown[0]["use"]["windowEndsAt"] is not None
    assert (shown[0]["terms"]["counterpart"], shown[0]["terms"]["leastBalance"]) == (token, str(balance))
    terms = shown[1]["terms"]
    assert (terms["version"], terms["userCalls"], terms["userDayCredits"]) == (2, limit, None)
    assert terms["targets"] == [{"contract": contract, "functions": ["0x760d9bba"]}]


def test_the_simulator_names_the_paying_policy_and_the_rules_of_earlier_ones(
    sponsor: Sponsor, viewer: User
) -> None:
    contract = random_address()
    first = make_policy(sponsor, targets=[{"contract": contract, "functions": []}]).policy
    second = make_policy(sponsor, position=1, share_percent=75).policy
    asked = {"profile": random_address(), "credits": 100}
    before = rows_of(*_COUNTED)
    one = {"contract": contract, "function": "0x" + secrets.token_hex(4)}
    paid = call(viewer, "post", path(sponsor, "simulate"), **asked, actions=[one])
    assert paid.status == 200, paid.body
    assert (paid.body["policy"], paid.body["sponsorCredits"], paid.body["code"]) == (first.name, 100, None)
    shared = call(viewer, "post", path(sponsor, "simulate"), **asked, actions=[one, {"contract": "profile"}])
    assert (shared.body["policy"], shared.body["sponsorCredits"], shared.body["userCredits"]) == (
        second.name,
        75,
        25,
    )
    assert [(each["policy"], each["code"]) for each in shared.body["refusals"]] == [
        (first.name, "sponsor-target")
    ]
    assert rows_of(*_COUNTED) == before


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("spend", {"days": "0"}),
        ("contracts", {"days": "91"}),
        ("refusals", {"days": "x"}),
        ("export", {"kind": "calls", "month": "2026-13"}),
        ("export", {"kind": "keys", "month": "2026-11"}),
        ("export", {}),
    ],
)
def test_invalid_queries_are_refused(
    sponsor: Sponsor, viewer: User, name: str, query: dict[str, str]
) -> None:
    response = call(viewer, "get", path(sponsor, name), **query)
    assert (response.status, response.body["code"]) == (400, "invalid-request")


@pytest.mark.parametrize("name", ["overview", "policies", "spend", "contracts", "refusals", "keys", "export"])
def test_a_non_member_reads_nothing_of_a_sponsor(sponsor: Sponsor, name: str) -> None:
    member_of(sponsor)
    assert call(UserFactory.create(), "get", path(sponsor, name)).status == 404
    assert call(None, "get", path(sponsor, name)).status == 401


def test_the_same_user_has_another_id_at_each_sponsor(sponsor: Sponsor) -> None:
    user, other = UserFactory.create(), UserFactory.create()
    shown = user_reference(sponsor, user.pk)
    assert shown == user_reference(sponsor, user.pk)
    assert shown not in {user_reference(sponsor, other.pk), user_reference(make_sponsor(), user.pk)}


def test_refusals_of_a_batch_add_up_and_unknown_sponsors_count_nowhere(sponsor: Sponsor) -> None:
    number = random.randint(2, 9)
    for _ in range(2):
        refused = [(sponsor.slug, "sponsor-target")] * number + [("there-is-none", "sponsor-target")]
        refusals.count(refused, now=timezone.now())
    assert [row.requests for row in RefusalCount.objects.all()] == [2 * number]
