"""What a first screen shows beside the account: the price of calls, the check-in as a habit; and staff's notes."""

import secrets
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils.timezone import now
from rest_framework.test import APIClient

from checkin.services import checkins
from credits.models import EntrySource, ExpiringLot, ExpiryRule
from credits.services import entries
from relay.models import RelayTransaction
from rewards.models import BadgeTrack
from tests.checkin.items import item
from tests.checkin.rows import lowest, put_in_force
from tests.factories import UserFactory
from tests.portal.history_rows import relayed
from tests.staff import member
from users.models import Note, User

pytestmark = pytest.mark.django_db


def read(client: APIClient, access: str, name: str = "home") -> dict[str, Any]:
    response = client.get(f"/api/user/{name}", HTTP_AUTHORIZATION=f"Bearer {access}")
    assert response.status_code == 200, response.content
    assert response["Cache-Control"] == "no-store"
    body: dict[str, Any] = response.json()
    return body


def test_before_any_call_there_is_no_price_and_no_spending(client: APIClient, access: str) -> None:
    body = read(client, access)

    assert (body["typicalCost"], body["spending"]) == (None, [])


def test_the_first_steps_of_a_newcomer_are_known(client: APIClient, access: str, user: User) -> None:
    steps = {"hadCredits": False, "relayedCall": False}
    assert read(client, access)["firstSteps"] == steps
    entries.grant(user=user, credits=1, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    assert read(client, access)["firstSteps"] == {**steps, "hadCredits": True}
    relayed(user, 1)
    assert read(client, access)["firstSteps"] == {"hadCredits": True, "relayedCall": True}


def test_credits_are_compared_with_the_users_own_use(client: APIClient, access: str, user: User) -> None:
    fresh = read(client, access)
    assert (fresh["creditLevel"], fresh["dailyUse"], fresh["daysLeft"]) == ("depleted", 0, None)

    entries.grant(user=user, credits=40, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    assert read(client, access)["creditLevel"] == "enough"

    # Charged today, so the use of a day is what was charged.
    relayed(user, 11)
    low = read(client, access)
    assert (low["creditLevel"], low["dailyUse"], low["daysLeft"]) == ("low", 11, 2)


def test_granted_credits_that_expire_soon_are_listed_with_their_remainder(
    client: APIClient, access: str, user: User
) -> None:
    given = entries.grant(user=user, credits=30, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    entries.grant(user=user, credits=50, source=EntrySource.SUBSCRIBED_PAYOUT, key=secrets.token_hex(8))
    expires_at = now().replace(microsecond=0) + timedelta(days=10)
    ExpiringLot.objects.create(entry=given, credits=30, expires_at=expires_at)
    assert read(client, access)["expiring"] == [], "without a rule nothing expires"
    ExpiryRule.objects.create(valid_from=now() - timedelta(days=1), days=30)

    relayed(user, 4)

    expected = {"credits": 26, "entrySource": "SURVEYS", "expiresAt": f"{expires_at:%Y-%m-%dT%H:%M:%SZ}"}
    assert read(client, access)["expiring"] == [expected]
    relayed(user, 30)
    assert read(client, access)["expiring"] == []


def test_the_typical_cost_is_the_median_of_all_users_and_spending_the_users_own(
    client: APIClient, access: str, user: User
) -> None:
    relayed(user, 2)
    relayed(UserFactory.create(), 3)
    for cost, call in zip((10, 20, 70, 80, 90), RelayTransaction.objects.order_by("id"), strict=True):
        RelayTransaction.objects.filter(pk=call.pk).update(real_cost=cost)

    body = read(client, access)

    assert body["typicalCost"] == 70
    assert body["spending"] == [{"day": str(now().date()), "credits": 30}]


@pytest.mark.parametrize(
    ("days_ago", "streak"), [((), 0), ((0,), 1), ((1,), 1), ((2,), 0), ((0, 1, 2, 4), 3), ((1, 2), 2)]
)
def test_a_streak_ends_today_or_yesterday(
    client: APIClient, access: str, user: User, days_ago: tuple[int, ...], streak: int
) -> None:
    for days in days_ago:
        checkins.execute(user=user, now=now() - timedelta(days=days))

    calendar = read(client, access)["checkIn"]

    assert calendar["streak"] == streak
    assert [day["checkIns"] for day in calendar["days"]] == [int(ago in days_ago) for ago in range(6, -1, -1)]
    assert calendar["canCheckIn"] == (0 not in days_ago)
    assert (calendar["nextCheckInAt"] is None) == calendar["canCheckIn"]


@pytest.mark.parametrize(
    ("days_ago", "ahead"), [((), 3), ((1,), 2), ((0,), 2), ((1, 0), 1), ((2, 1), None), ((3, 2), 3)]
)
def test_the_next_drop_of_the_streak_comes_nearer_and_then_is_possible(
    client: APIClient, access: str, user: User, days_ago: tuple[int, ...], ahead: int | None
) -> None:
    rare = item("EXPERIENCE", least=Decimal(3), most=Decimal(4), streak_days=3)
    usual = item("EXPERIENCE", least=Decimal(1), most=Decimal(1))
    put_in_force(lowest(BadgeTrack.PERMANENT), [usual, rare])
    for days in days_ago:
        checkins.execute(user=user, now=now() - timedelta(days=days))

    calendar = read(client, access)["checkIn"]

    shown = {"type": "EXPERIENCE", "least": 3, "most": 4, "effectiveTimeInMinutes": None, "inDays": ahead}
    assert calendar["nextDrop"] == (shown if ahead else None)
    assert len(calendar["chances"]) == (1 if ahead else 2)


def test_the_chances_are_those_of_the_next_draw(client: APIClient, access: str, user: User) -> None:
    before = read(client, access)["checkIn"]["chances"]
    assert {chance["type"] for chance in before} == {"EXPERIENCE"}
    entries.grant(user=user, credits=1, source=EntrySource.SURVEYS, key=secrets.token_hex(8))

    chances = read(client, access)["checkIn"]["chances"]

    assert {"EXPERIENCE", "CREDITS"} < {chance["type"] for chance in chances}
    assert sum(chance["probability"] for chance in chances) == pytest.approx(1)
    assert all(0 < chance["least"] <= chance["most"] for chance in chances)


def test_a_user_reads_the_notes_about_them_and_no_other(client: APIClient, access: str, user: User) -> None:
    author, text = member("support"), secrets.token_hex(8)
    Note.objects.create(person=user, author=author, text=text)
    Note.objects.create(person=UserFactory.create(), author=author, text="about another")

    notes = read(client, access, "staffNotes")["notes"]

    assert [note["text"] for note in notes] == [text]
    assert set(notes[0]) == {"text", "writtenAt"}
