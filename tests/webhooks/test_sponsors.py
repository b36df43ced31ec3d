"""Members of a sponsor are told when its credits fall below its alarm, and when there are enough again."""

import json
import random
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from credits.services import entries
from sponsors.models import Member, Policy, PolicyVersion, Sponsor, Usage, UsageScope, Verifier
from sponsors.rules.policies import DAY_SECONDS, OutsideResponse, period_of
from sponsors.services import funding, verifiers
from tests.factories import UserFactory, make
from tests.relay.creating import for_profiles
from tests.sponsors.sponsorships import make_policy, make_sponsor, new_version
from tests.staff import browser_of
from tests.staff import member as member_of_staff
from tests.webhooks.conftest import ORIGIN, App, sign_in
from tests.webhooks.receiver import Receiver
from users.models import User
from webhooks.errors import TooManyEndpoints
from webhooks.models import TO_SPONSORS, Cursor, Endpoint, Message, Notice, NoticeAddress
from webhooks.services import collection, delivery, endpoints, notices

pytestmark = pytest.mark.django_db


@pytest.fixture
def alarm() -> int:
    return random.randint(100, 10_000)


@pytest.fixture
def sponsor(alarm: int) -> Sponsor:
    """A sponsor with exactly the credits of its alarm."""
    row = make_sponsor(alarm)
    funding.set_alarm(row, credits=alarm)
    return row


@pytest.fixture
def member(app: App, sponsor: Sponsor, settings: Any) -> User:
    """A member who is signed in at the app, and has confirmed an address."""
    settings.EMAIL_HOST = "mail.example.org"
    user = UserFactory.create()
    Member.objects.create(sponsor=sponsor, user=user, role="viewer")
    sign_in(user)
    make(NoticeAddress, user=user, email="ada@example.org", language="en", confirmed_at=timezone.now())
    collection.collect(now=timezone.now())
    return user


def _move(sponsor: Sponsor, credits: int) -> None:
    entries.adjust_sponsor(
        sponsor_id=sponsor.pk, credits=credits, key=secrets.token_hex(8), actor=None, reason="test"
    )
    for seconds in (5, 10):
        collection.collect(now=timezone.now() + timedelta(seconds=seconds))


def _told() -> list[dict[str, Any]]:
    rows = Message.objects.filter(type__startswith="sponsor.").order_by("pk")
    return [json.loads(row.body) for row in rows]


def test_a_member_is_notified_once_for_each_crossing(
    app: App, sponsor: Sponsor, member: User, alarm: int
) -> None:
    sign_in(UserFactory.create())  # Who is no member hears nothing.
    assert _told() == []
    _move(sponsor, -1)
    _move(sponsor, -1)
    [low] = _told()
    assert (low["type"], low["data"]) == (
        "sponsor.low",
        {
            "address": member.profile_address,
            "sponsor": sponsor.slug,
            "credits": alarm - 1,
            "alarm": alarm,
        },
    )
    _move(sponsor, 2)
    _move(sponsor, -1)
    assert [body["type"] for body in _told()] == ["sponsor.low", "sponsor.recovered", "sponsor.low"]
    assert set(Notice.objects.values_list("user", flat=True)) == {member.pk}


def test_a_member_gets_an_e_mail_that_names_the_sponsor(sponsor: Sponsor, member: User, alarm: int) -> None:
    _move(sponsor, -1)
    notices.send_due(now=timezone.now())
    _move(sponsor, 1)
    notices.send_due(now=timezone.now())
    low, recovered = mail.outbox
    assert low.to == ["ada@example.org"]
    assert low.subject.endswith(f"the credits of {sponsor.slug} are low")
    assert f"The sponsor has {alarm - 1} credits. Its alarm is at {alarm}." in low.body
    assert recovered.subject.endswith(f"{sponsor.slug} has enough credits again")


def test_owners_get_one_e_mail_for_each_outage_of_their_server(
    app: App, sponsor: Sponsor, member: User, settings: Any
) -> None:
    settings.WEBHOOK_SECRET_KEYS = [secrets.token_urlsafe(32)]
    owner, url = UserFactory.create(), f"https://{secrets.token_hex(4)}.example.org/pays"
    Member.objects.create(sponsor=sponsor, user=owner, role="owner")
    make(NoticeAddress, user=owner, email="owner@example.org", language="de", confirmed_at=timezone.now())
    verifier = Verifier(sponsor=sponsor, url=url)
    verifiers.save(verifier, {})

    def fail(times: int, fault: str) -> None:
        for _ in range(times):
            verifier.refresh_from_db()
            verifiers._record(verifier, OutsideResponse(False, fault=fault))
        for seconds in (5, 10):
            collection.collect(now=timezone.now() + timedelta(seconds=seconds))
        notices.send_due(now=timezone.now())

    fail(2, "status 500")
    assert mail.outbox == []
    fail(1, "status 404")
    [told] = mail.outbox
    assert told.to == ["owner@example.org"]
    assert told.subject.endswith(f"der Server von {sponsor.slug} antwortet nicht richtig")
    for part in (url, "status 404", f"{settings.PUBLIC_URL}/sponsor#calls"):
        assert part in told.body
    fail(7, "status 404")
    assert len(mail.outbox) == 1

    # A server that works for a moment and fails again has the same outage for an hour.
    verifier.refresh_from_db()
    verifiers._record(verifier, OutsideResponse(True))
    verifier.refresh_from_db()
    assert (verifier.failures, verifier.fault, verifier.failing_since) == (0, "", None)
    fail(3, "status 401")
    assert len(mail.outbox) == 1
    Verifier.objects.update(announced_at=timezone.now() - timedelta(minutes=61))
    fail(1, "status 401")
    assert len(mail.outbox) == 2
    assert "status 401" in mail.outbox[1].body
    # However long an outage lasts, it is announced once.
    Verifier.objects.update(
        failing_since=timezone.now() - timedelta(days=3), announced_at=timezone.now() - timedelta(days=2)
    )
    fail(2, "status 401")
    assert len(mail.outbox) == 2


def test_without_an_alarm_no_member_is_notified(sponsor: Sponsor, member: User, alarm: int) -> None:
    funding.set_alarm(sponsor, credits=None)
    _move(sponsor, -alarm - 1)
    assert _told() == []
    assert not Notice.objects.exists()
    funding.set_alarm(sponsor, credits=alarm)
    _move(sponsor, -1)
    assert [body["type"] for body in _told()] == ["sponsor.low"]


@pytest.fixture
def owner(sponsor: Sponsor, member: User) -> User:
    """An owner who has confirmed an address, beside the member, who is none."""
    user = UserFactory.create()
    Member.objects.create(sponsor=sponsor, user=user, role="owner")
    make(NoticeAddress, user=user, email="owner@example.org", language="en", confirmed_at=timezone.now())
    return user


def _noon(days: int) -> datetime:
    """Return noon (UTC) of a coming day, far from the ends of its windows."""
    return period_of(timezone.now(), seconds=DAY_SECONDS).end + timedelta(days=days - 1, hours=12)


def _use(version: PolicyVersion, calls: int, *, at: datetime, of: UsageScope = UsageScope.WINDOW) -> None:
    """Have the policy count so many new profiles, and the service look."""
    window = period_of(at, seconds=version.window_seconds or DAY_SECONDS).start
    begins = window if of == UsageScope.WINDOW else datetime(1970, 1, 1, tzinfo=UTC)
    Usage.objects.update_or_create(
        policy=version.policy, scope=of, user_number=0, begins=begins, defaults={"calls": calls}
    )
    for _ in range(2):
        Cursor.objects.update(read_until=at - timedelta(seconds=5))
        collection.collect(now=at)


def _numbers() -> list[tuple[str, int, int]]:
    rows = [body["data"] for body in _told() if body["type"] == "sponsor.profiles-low"]
    return [(row["policy"], row["number"], row["percent"]) for row in rows]


def test_owners_and_endpoints_are_told_each_part_of_a_number_once_a_window(
    sponsor: Sponsor, owner: User, endpoint: tuple[Endpoint, str], receiver: Receiver
) -> None:
    endpoints.create_for_sponsor(make_sponsor(), url=receiver.url, event_types=TO_SPONSORS, maker=None)
    number = 5 * random.randint(2, 40)
    most = 4 * number // 5
    version = for_profiles(sponsor, window_seconds=DAY_SECONDS, window_calls=number)
    name = version.policy.name

    _use(version, most - 1, at=_noon(1))
    assert (_numbers(), Notice.objects.count()) == ([], 0)
    _use(version, most, at=_noon(1))
    _use(version, number - 1, at=_noon(1))
    assert _numbers() == [(name, number, 80)]
    _use(version, number, at=_noon(1))
    _use(version, most - 1, at=_noon(1))
    _use(version, number, at=_noon(1))
    assert _numbers() == [(name, number, 80), (name, number, 100)]
    _use(version, number, at=_noon(2))
    assert _numbers()[2:] == [(name, number, 100)]

    messages = Message.objects.filter(type="sponsor.profiles-low").order_by("pk")
    assert {row.endpoint_id for row in messages} == {endpoint[0].pk}
    assert json.loads(messages[0].body)["data"] == {
        "sponsor": sponsor.slug,
        "policy": name,
        "version": 1,
        "percent": 80,
        "number": number,
        "used": most,
        "windowEndsAt": int(period_of(_noon(1), seconds=DAY_SECONDS).end.timestamp()),
    }
    notices.send_due(now=timezone.now())
    assert [each.to for each in mail.outbox] == [["owner@example.org"]] * 3
    assert mail.outbox[0].subject.endswith(f"80 % of the new profiles of {sponsor.slug} are used")
    for part in (
        name,
        f"for {number} new profiles in each window",
        f"for {most} in this one",
        "/sponsor#policies",
    ):
        assert part in mail.outbox[0].body


def test_a_number_in_total_is_told_once_and_again_when_new_terms_raise_it(
    sponsor: Sponsor, owner: User, endpoint: tuple[Endpoint, str]
) -> None:
    number = 5 * random.randint(2, 40)
    version = for_profiles(sponsor, campaign_calls=number)
    name, total = version.policy.name, UsageScope.CAMPAIGN
    _use(version, number, at=_noon(1), of=total)
    Notice.objects.update(finished_at=timezone.now() - timedelta(days=31))
    notices.purge(now=timezone.now())
    _use(version, number, at=_noon(40), of=total)
    assert _numbers() == [(name, number, 100)]
    assert not Notice.objects.exists()

    raised = new_version(version.policy, purpose=version.purpose, campaign_calls=2 * number)
    _use(raised, 2 * number - number // 5 - 1, at=_noon(41), of=total)
    _use(raised, 2 * number, at=_noon(41), of=total)
    assert _numbers()[1:] == [(name, 2 * number, 80), (name, 2 * number, 100)]
    notices.send_due(now=timezone.now())
    assert f"for {2 * number} new profiles in total, and has paid for {2 * number}." in mail.outbox[-1].body


def test_owners_get_one_e_mail_a_day_for_windows_that_are_shorter(
    sponsor: Sponsor, owner: User, endpoint: tuple[Endpoint, str]
) -> None:
    version = for_profiles(sponsor, window_seconds=60, window_calls=1)
    for minutes in range(3):
        _use(version, 1, at=_noon(1) + timedelta(minutes=minutes))
    assert _numbers() == [(version.policy.name, 1, 100)] * 3
    assert Notice.objects.count() == 1


@pytest.mark.parametrize("other", ["calls", "off", "older"])
def test_only_numbers_in_force_of_new_profiles_are_told(
    sponsor: Sponsor, owner: User, endpoint: tuple[Endpoint, str], other: str
) -> None:
    make = make_policy if other == "calls" else for_profiles
    version = make(sponsor, window_seconds=DAY_SECONDS, window_calls=1)
    if other == "off":
        Policy.objects.update(is_enabled=False)
    if other == "older":
        new_version(version.policy, purpose=version.purpose)
    _use(version, 1, at=_noon(1))
    assert (_numbers(), Notice.objects.count()) == ([], 0)


@pytest.fixture
def endpoint(sponsor: Sponsor, receiver: Receiver, create_endpoint: Any) -> tuple[Endpoint, str]:
    """An endpoint of the sponsor with its secret."""
    row, secret = endpoints.create_for_sponsor(sponsor, url=receiver.url, event_types=TO_SPONSORS, maker=None)
    Endpoint.objects.filter(pk=row.pk).update(enabled_at=timezone.now() - timedelta(minutes=1))
    collection.collect(now=timezone.now())
    return row, secret


def test_a_sponsors_endpoint_gets_signed_messages_about_its_own_credits_alone(
    sponsor: Sponsor, endpoint: tuple[Endpoint, str], receiver: Receiver, alarm: int
) -> None:
    other, person = make_sponsor(alarm), UserFactory.create()
    theirs, _ = endpoints.create_for_sponsor(other, url=receiver.url, event_types=TO_SPONSORS, maker=None)
    Endpoint.objects.update(enabled_at=timezone.now() - timedelta(minutes=1))
    sign_in(person)
    entries.grant(user=person, credits=10, source="VIDEO_ADS", key=secrets.token_hex(8))
    _move(other, -1)
    _move(sponsor, -1)
    of_endpoints = {
        (row.endpoint_id, json.loads(row.body)["data"]["sponsor"]) for row in Message.objects.all()
    }
    assert of_endpoints == {(endpoint[0].pk, sponsor.slug), (theirs.pk, other.slug)}
    Message.objects.filter(endpoint=theirs).delete()
    delivery.deliver_due(now=timezone.now())
    bodies = {one["type"]: one["data"] for one in (row.verified(endpoint[1]) for row in receiver.requests)}
    assert bodies == {
        "sponsor.low": {"sponsor": sponsor.slug, "credits": alarm - 1, "alarm": alarm},
        "sponsor.posted": {
            "sponsor": sponsor.slug,
            "creditSource": "STAFF_ADJUSTMENT",
            "creditsEarned": -1,
            "creditsBefore": alarm,
            "creditsAfter": alarm - 1,
        },
    }


def test_a_deleted_endpoint_gets_no_messages_and_frees_its_slot(
    sponsor: Sponsor, endpoint: tuple[Endpoint, str], receiver: Receiver
) -> None:
    for _ in range(endpoints.MOST_OF_SPONSOR - 1):
        endpoints.create_for_sponsor(sponsor, url=receiver.url, event_types=TO_SPONSORS, maker=None)
    with pytest.raises(TooManyEndpoints):
        endpoints.create_for_sponsor(sponsor, url=receiver.url, event_types=TO_SPONSORS, maker=None)
    endpoints.delete_of_sponsor(endpoint[0], now=timezone.now())
    endpoints.create_for_sponsor(sponsor, url=receiver.url, event_types=TO_SPONSORS, maker=None)
    Message.objects.all().delete()
    _move(sponsor, -1)
    assert not Message.objects.filter(endpoint=endpoint[0]).exists()


def test_staff_see_a_sponsors_endpoint_and_cannot_subscribe_it_to_user_events(
    endpoint: tuple[Endpoint, str],
) -> None:
    staff = browser_of(member_of_staff("superuser"))
    page = f"/admin/webhooks/endpoint/{endpoint[0].pk}/change/"
    assert endpoint[0].url in staff.get(page).content.decode()
    body = {"name": "x", "url": endpoint[0].url, "origins": ORIGIN, "event_types": ["credits.posted"]}
    assert staff.post(page, body).status_code == 403
    assert Endpoint.objects.get().origins == []
