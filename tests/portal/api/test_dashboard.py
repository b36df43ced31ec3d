"""The dashboard over HTTP: the specification's fields for every kind of user, in a fixed number of statements."""

import random
import secrets
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import jsonschema
import pytest
from django.utils.timezone import now
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from credits.models import EntrySource
from credits.services import entries
from gateway.common.fields import SAFE_INTEGER_MAX
from payments.models import Subscription
from rewards.models import Badge, BadgeTrack, Modifier, ModifierType
from rewards.services import experience, modifiers
from tests.credits.allowances import set_allowance
from tests.credits.holding import place_hold
from tests.factories import make
from tests.portal.api import shapes
from tests.portal.history_rows import earned, relayed
from tests.staff import browser_of, confirm, member, messages_of
from users.models import User

pytestmark = pytest.mark.django_db
PATH = "/api/user/dashboardInfo"
# The session with its user; account, progress with allowance, badges, modifiers; five of the check-in; two histories.
OF_DASHBOARD = 12
# And what the subscription costs.
OF_SUBSCRIBERS_DASHBOARD = OF_DASHBOARD + 1
Read = Callable[..., dict[str, Any]]


@pytest.fixture
def read(client: APIClient, access: str) -> Read:
    """Return what reads a path as the signed-in user and gets the response."""

    def ask(path: str = PATH, **query: Any) -> dict[str, Any]:
        response = client.get(path, query, HTTP_AUTHORIZATION=f"Bearer {access}")
        assert response.status_code == 200, response.content
        assert response["Cache-Control"] == "no-store"
        body: dict[str, Any] = response.json()
        return body

    return ask


@pytest.fixture
def dashboard(read: Read) -> Read:
    """Return what reads the dashboard and compares its form with the specification."""

    def ask() -> dict[str, Any]:
        body = read()
        jsonschema.validate(body, shapes.DASHBOARD)
        return body

    return ask


def gain(user: User, track: BadgeTrack, base: int) -> None:
    experience.gain(user=user, track=track, base=base, key=secrets.token_hex(8), cause="TEST")


def subscribe(user: User, *, days: int = 30) -> None:
    begin = now() - timedelta(days=10)
    set_allowance(user=user, credits=5, starts_at=begin, ends_at=begin + timedelta(days=days), renews=False)


def create_subscription(user: User, *, amount_minor: int) -> None:
    make(Subscription, user=user, amount_minor=amount_minor)


def test_a_new_user_has_nothing_and_the_lowest_badges(user: User, dashboard: Read) -> None:
    body = dashboard()
    assert body["userInfo"] == {
        "credits": 0,
        "subscriptionAmount": 0,
        "permanentExp": 0,
        "subscriptionExp": 0,
        "percentToNextPermanentBadge": 0,
        "percentToNextSubscriberBadge": 0,
        "isSubscriber": False,
        "canCheckIn": True,
    }
    for name, track in (("permanentBadge", BadgeTrack.PERMANENT), ("subscriberBadge", BadgeTrack.SUBSCRIBER)):
        lowest = Badge.objects.filter(track=track).earliest("exp_lower_bound")
        assert (body[name]["exp_lower_bound"], body[name]["exp_upper_bound"]) == (0, lowest.exp_upper_bound)
        assert body[name]["bonus_creds_surveys"] == float(lowest.bonus_creds_surveys)
        assert body[name]["related_check_in_drops"] > 0
    assert body["modifiers"] == body["earningHistory"] == body["transactionHistory"] == []


def test_a_subscriber_sees_the_amount_the_badge_and_active_modifiers(user: User, dashboard: Read) -> None:
    amount = random.randint(500, 9_999)
    create_subscription(user, amount_minor=amount)
    subscribe(user)
    gain(user, BadgeTrack.SUBSCRIBER, 3_000)
    given, ended = (
        modifiers.grant(
            user=user,
            modifier_type=ModifierType.BONUS_PUSH_ADS_CREDITS,
            value=Decimal("0.0525"),
            minutes=60,
            key=secrets.token_hex(8),
            reason="",
        )
        for _ in range(2)
    )
    Modifier.objects.filter(pk=ended.pk).update(
        created_at=now() - timedelta(hours=2), expires_at=now() - timedelta(hours=1)
    )
    body = dashboard()
    info = body["userInfo"]
    assert (info["isSubscriber"], info["subscriptionAmount"], info["subscriptionExp"]) == (
        True,
        amount / 100,
        3_000,
    )
    assert body["subscriberBadge"]["exp_lower_bound"] == 3_000
    [shown] = body["modifiers"]
    assert shown["id"] == given.pk
    assert (shown["related_user"], shown["modifier_type"], shown["value"]) == (
        user.profile_address,
        "BONUS_PUSH_ADS_CREDITS",
        0.0525,
    )


def test_a_modifier_above_the_cap_is_shown_with_its_effective_bonus(user: User, dashboard: Read) -> None:
    for value in ("0.6", "10"):
        modifiers.grant(
            user=user,
            modifier_type=ModifierType.BONUS_SURVEYS_CREDITS,
            value=Decimal(value),
            minutes=60,
            key=secrets.token_hex(8),
            reason="",
        )
    assert [shown["value"] for shown in dashboard()["modifiers"]] == [0.6, 0.4]


@pytest.mark.parametrize("status", [Subscription.Status.INCOMPLETE, Subscription.Status.ACTIVE])
def test_a_subscription_that_was_never_paid_costs_nothing_yet(
    user: User, dashboard: Read, status: Subscription.Status
) -> None:
    create_subscription(user, amount_minor=999)
    Subscription.objects.update(status=status)

    info = dashboard()["userInfo"]

    assert (info["isSubscriber"], info["subscriptionAmount"]) == (False, 0)


def test_progress_stops_at_the_top_of_the_badge_that_a_lapsed_subscriber_is_shown(
    user: User, dashboard: Read
) -> None:
    gain(user, BadgeTrack.SUBSCRIBER, 50_000)

    body = dashboard()

    assert body["subscriberBadge"]["exp_upper_bound"] < 50_000
    assert body["userInfo"]["percentToNextSubscriberBadge"] == 1


def test_a_modifier_ended_by_staff_disappears_at_once_with_its_bonus(user: User, dashboard: Read) -> None:
    mistaken, kept = (
        modifiers.grant(
            user=user,
            modifier_type=ModifierType.BONUS_CREDITS_BACK,
            value=Decimal(value),
            minutes=random.randint(10, 999),
            key=secrets.token_hex(8),
            reason="",
        )
        for value in ("10", "0.01")
    )
    assert {shown["id"] for shown in dashboard()["modifiers"]} == {mistaken.pk, kept.pk}
    page = confirm(browser_of(member("support")), "rewards_modifier", "end", mistaken)
    assert "It has ended." in messages_of(page)
    assert [shown["id"] for shown in dashboard()["modifiers"]] == [kept.pk]


def has_one_of_each(user: User) -> None:
    """Give a row for each of the arrays, so that the form of a row is looked at."""
    earned(user, 1)
    relayed(user, 1)
    modifiers.grant(
        user=user,
        modifier_type=ModifierType.BONUS_CREDITS_BACK,
        value=Decimal("0.25"),
        minutes=60,
        key=secrets.token_hex(8),
        reason="",
    )


def assert_one_of_each(body: dict[str, Any]) -> None:
    assert [len(body[name]) for name in ("modifiers", "earningHistory", "transactionHistory")] == [1, 1, 1]


def test_a_lapsed_subscriber_keeps_the_experience_and_is_shown_the_lowest_badge(
    user: User, dashboard: Read
) -> None:
    subscribe(user, days=9)
    gain(user, BadgeTrack.SUBSCRIBER, 50_000)
    has_one_of_each(user)
    body = dashboard()
    assert_one_of_each(body)
    assert not body["userInfo"]["isSubscriber"]
    assert body["userInfo"]["subscriptionExp"] == 50_000
    assert body["userInfo"]["percentToNextSubscriberBadge"] == 1
    assert body["subscriberBadge"]["exp_lower_bound"] == 0


def test_progress_at_the_top_badge_is_1_and_its_upper_bound_is_safe(user: User, dashboard: Read) -> None:
    top = Badge.objects.filter(track=BadgeTrack.PERMANENT).latest("exp_lower_bound")
    gain(user, BadgeTrack.PERMANENT, top.exp_lower_bound)
    has_one_of_each(user)
    body = dashboard()
    assert_one_of_each(body)
    assert body["permanentBadge"]["exp_upper_bound"] == SAFE_INTEGER_MAX == 9007199254740991
    assert body["userInfo"]["percentToNextPermanentBadge"] == 1


def test_credits_are_the_available_balance(user: User, dashboard: Read) -> None:
    entries.grant(user=user, credits=100, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    place_hold(user=user, credits=130, key=secrets.token_hex(8), debt_limit=30)
    assert dashboard()["userInfo"]["credits"] == -30


def test_histories_show_balances_and_leave_relay_charges_out_of_the_earnings(
    user: User, dashboard: Read
) -> None:
    entries.grant(user=user, credits=500, source=EntrySource.OFFERWALL, key=secrets.token_hex(8))
    relayed(user, 2)
    entries.reverse(user=user, credits=40, source=EntrySource.EARNING_REVERSAL, key=secrets.token_hex(8))
    body = dashboard()
    assert [
        (row["credit_source"], row["credits_earned"], row["credits_before"], row["credits_after"])
        for row in body["earningHistory"]
    ] == [("EARNING_REVERSAL", -40, 498, 458), ("OFFERWALL", 500, 0, 500)]
    assert [
        (row["expected_cost"], row["real_cost"], row["credits_before"], row["credits_after"], row["status"])
        for row in body["transactionHistory"]
    ] == [(2, 1, 499, 498, "Success"), (2, 1, 500, 499, "Success")]
    assert {row["related_user"] for row in body["earningHistory"] + body["transactionHistory"]} == {
        user.profile_address
    }


@pytest.mark.parametrize("length", [0, 100, 10_000])
def test_a_dashboard_costs_the_same_whatever_the_history(
    user: User, dashboard: Read, django_assert_num_queries: DjangoAssertNumQueries, length: int
) -> None:
    if length:
        earned(user, length)
        relayed(user, length)
    with django_assert_num_queries(OF_DASHBOARD):
        body = dashboard()
    subscribe(user)
    with django_assert_num_queries(OF_SUBSCRIBERS_DASHBOARD):
        dashboard()
    shown = min(length, 100)
    assert len(body["earningHistory"]) == len(body["transactionHistory"]) == shown
    if length:
        assert body["transactionHistory"][0]["credits_after"] == 0


@pytest.mark.parametrize(("name", "begin"), [("earnings", earned), ("transactions", relayed)])
def test_a_history_is_read_page_by_page_while_it_grows(
    user: User, read: Read, name: str, begin: Callable[[User, int], None]
) -> None:
    begin(user, 7)
    page = read(f"/api/user/{name}", limit=3)
    rows = page["results"]
    begin(user, 2)
    while page["next"]:
        page = read(page["next"].removeprefix("http://testserver"))
        rows += page["results"]
    assert len(rows) == 7
    afters = [row["credits_after"] for row in rows]
    assert sorted(set(afters)) == sorted(afters)
    assert all(row["created_at"].endswith("Z") for row in rows)


def cursor_at(position: str) -> dict[str, str]:
    return {"cursor": b64encode(urlencode({"p": position}).encode()).decode()}


@pytest.mark.parametrize("name", ["earnings", "transactions"])
@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "501"},
        {"limit": "x"},
        {"limit": "٣"},
        # Its first nine digits are a small number.
        {"limit": "0000000019999"},
        {"limit": "000000001" + "0" * 5_000},
        {"cursor": "nonsense"},
        {"cursor": "\0"},
        {"cursor": "cD0y\0"},
        {"cursor": " "},
        cursor_at("abc"),
        cursor_at("NaN"),
        cursor_at("1.5"),
        cursor_at("-1"),
        cursor_at("\0"),
        cursor_at("٣"),
        cursor_at("9" * 19),
        cursor_at("9" * 5_000),
    ],
    ids=lambda query: "&".join(f"{name}={value[:20]}" for name, value in query.items()),
)
def test_an_invalid_limit_or_cursor_is_refused_by_name(
    client: APIClient, access: str, name: str, query: dict[str, str]
) -> None:
    response = client.get(f"/api/user/{name}", query, HTTP_AUTHORIZATION=f"Bearer {access}")
    assert (response.status_code, response.json()["code"]) == (400, "invalid-request")
    assert next(iter(query)) in response.json()["errors"][0]["pointer"]


@pytest.mark.parametrize("name", ["dashboardInfo", "earnings", "transactions"])
def test_a_user_does_not_see_the_history_of_another(
    client: APIClient, user: User, access: str, name: str
) -> None:
    other = User.objects.create(username="other", profile_address="0x" + "Ab" * 20)
    earned(other, 3)
    relayed(other, 3)
    result = client.get(f"/api/user/{name}/", HTTP_AUTHORIZATION=f"Bearer {access}").json()
    shown = [result.get(member) for member in ("results", "earningHistory", "transactionHistory")]
    assert not any(shown)
    assert client.get(f"/api/user/{name}").status_code == 401
    assert client.post(f"/api/user/{name}", HTTP_AUTHORIZATION=f"Bearer {access}").status_code == 405
