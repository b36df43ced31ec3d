"""E-mails to account holders: asked for, confirmed, sent once for each event, repeated after failures, and ended."""

import re
import secrets
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from smtplib import SMTPServerDisconnected
from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from credits.models import ExpiringLot, ExpiryRule
from credits.services import entries
from credits.services.holds import close
from tests.credits.holding import place_hold
from tests.factories import UserFactory
from tests.webhooks.conftest import App, sign_in
from users.models import User
from webhooks.models import Notice, NoticeAddress
from webhooks.services import collection, messages, notices

pytestmark = pytest.mark.django_db
EMAIL = "ada@example.org"


class UnreachableServer(EmailBackend):
    """A mail server that does not respond."""

    def send_messages(self, *_: Any) -> int:
        raise SMTPServerDisconnected("try again later")


@pytest.fixture(autouse=True)
def _mail_server(settings: Settings) -> None:
    settings.EMAIL_HOST = "mail.example.org"


@pytest.fixture
def user() -> User:
    return UserFactory.create()


def _ask(user: User, email: str | None = EMAIL, **headers: str) -> Any:
    client = APIClient()
    client.force_authenticate(user)
    return client.post("/api/user/noticeEmail", {"email": email}, format="json", headers=headers)


def _send(*, later: timedelta = timedelta(0)) -> list[Any]:
    """Send the due notices, and return the e-mails of this run."""
    before = len(mail.outbox)
    notices.send_due(now=timezone.now() + later)
    return mail.outbox[before:]


def _link(message: Any, page: str) -> str:
    found = re.search(rf"https?://[^/]+(/notices/{page}/\S+)", message.body)
    assert found
    return found[1]


def _confirmed(user: User, **headers: str) -> None:
    assert _ask(user, **headers).status_code == 200
    [question] = _send()
    assert Client().post(_link(question, "confirm")).status_code == 200
    collection.collect(now=timezone.now())


def _use_up(user: User) -> None:
    entries.grant(user=user, credits=100, source="VIDEO_ADS", key=secrets.token_hex(8))
    held = place_hold(user=user, credits=100, key=secrets.token_hex(8))
    close(costs={held.hold.pk: 100})
    for _ in range(2):
        collection.collect(now=timezone.now())


def test_an_address_is_confirmed_by_the_button_behind_the_link_and_not_by_opening_it(user: User) -> None:
    assert _ask(user).json() == {"email": EMAIL, "isConfirmed": False, "isAvailable": True}
    [question] = _send()
    assert (question.to, _send()) == ([EMAIL], [])
    link = _link(question, "confirm")

    assert b"<form" in Client().get(link).content
    assert NoticeAddress.objects.get().confirmed_at is None
    assert Client().post(link).status_code == 200

    assert NoticeAddress.objects.get().confirmed_at is not None
    assert _ask(user).json()["isConfirmed"]
    assert _send() == []


def test_used_up_credits_are_announced_once_with_an_unsubscribe_link(user: User) -> None:
    _confirmed(user)
    _use_up(user)

    [told] = _send()
    assert _send(later=timedelta(days=2)) == []
    assert "used up" in told.subject
    assert "You have 0 credits and use 100 a day." in told.body
    assert str(user.profile_address) not in told.body
    stop = _link(told, "stop")
    assert told.extra_headers["List-Unsubscribe"].endswith(f"{stop}>")
    assert b"<form" in Client().get(stop).content
    assert NoticeAddress.objects.exists()
    for _ in range(2):
        assert Client().post(stop, {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert not NoticeAddress.objects.exists()
    _use_up(user)
    assert _send() == []


def _announce(user: User, *amounts: int, expires: datetime) -> None:
    """Give the user lots whose expiry is announced for these times, a day apart."""
    ExpiryRule.objects.get_or_create(valid_from=datetime(2020, 1, 1, tzinfo=UTC), days=365)
    for days, amount in enumerate(amounts):
        grant = entries.grant(user=user, credits=amount, source="VIDEO_ADS", key=secrets.token_hex(8))
        ExpiringLot.objects.create(entry=grant, credits=amount, expires_at=expires + timedelta(days=days))
    collection.collect(now=timezone.now() + timedelta(seconds=1))


def test_credits_expiring_in_one_week_are_announced_together_a_week_before(user: User) -> None:
    _confirmed(user)
    today = timezone.now()
    monday = (today + timedelta(days=14 - today.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    _announce(user, 100, 20, expires=monday + timedelta(days=1))
    _announce(user, 7, expires=monday + timedelta(days=8))

    begins = monday - timedelta(days=7)
    assert _send(later=begins - today - timedelta(hours=1)) == []
    [told] = _send(later=begins - today + timedelta(hours=1))

    assert "120 credits expire soon" in told.subject
    assert f"expire on {monday + timedelta(days=1):%Y-%m-%d}." in told.body
    assert "credits that you bought never expire" in told.body
    assert told.extra_headers["List-Unsubscribe"]
    [next_week] = _send(later=monday - today + timedelta(hours=1))
    assert "7 credits expire soon" in next_week.subject


def test_credits_used_before_that_week_are_not_announced(user: User) -> None:
    _confirmed(user)
    soon = timezone.now() + timedelta(days=3)
    _announce(user, 100, expires=soon)
    held = place_hold(user=user, credits=100, key=secrets.token_hex(8))
    close(costs={held.hold.pk: 100})

    assert _send() == []
    notice = Notice.objects.get(kind=Notice.Kind.EXPIRING)
    assert (notice.status, notice.error) == ("given-up", "The credits have been used.")


def test_a_user_without_an_email_address_gets_no_expiry_notice(user: User) -> None:
    _announce(user, 100, expires=timezone.now() + timedelta(days=3))

    assert not Notice.objects.exists()


def test_e_mails_have_the_language_of_the_request(user: User) -> None:
    _confirmed(user, accept_language="de")
    _use_up(user)

    [told] = _send()

    assert "aufgebraucht" in told.subject
    assert "Sie haben 0 Credits" in told.body


def test_nothing_is_sent_to_an_address_that_was_not_confirmed(user: User) -> None:
    _ask(user)
    _send()
    _use_up(user)

    assert _send(later=timedelta(days=1)) == []
    assert Notice.objects.get().kind == Notice.Kind.CONFIRM


def test_a_failure_is_shown_and_retried_until_it_is_given_up(user: User, settings: Settings) -> None:
    _confirmed(user)
    _use_up(user)
    backend, settings.EMAIL_BACKEND = settings.EMAIL_BACKEND, f"{__name__}.UnreachableServer"
    assert _send() == []
    notice = Notice.objects.get(kind=Notice.Kind.DEPLETED)
    assert (notice.status, notice.attempts) == ("waiting", 1)
    assert notice.error == "SMTPServerDisconnected: try again later"
    assert notice.next_attempt_at > timezone.now()
    for days in range(1, 9):
        _send(later=timedelta(days=days))
    notice.refresh_from_db()
    assert (notice.status, notice.attempts) == ("given-up", 5)

    Notice.objects.filter(pk=notice.pk).update(status="waiting", finished_at=None)
    settings.EMAIL_BACKEND = backend
    assert len(_send(later=timedelta(days=9))) == 1


def test_a_user_without_an_email_address_has_no_notices(app: App, user: User) -> None:
    sign_in(user)
    collection.collect(now=timezone.now())
    _use_up(user)

    assert app.endpoint.messages.filter(type="credits.depleted").count() == 1
    assert not Notice.objects.exists()


def test_a_question_about_a_changed_address_is_not_sent_and_not_shown_as_sent(user: User) -> None:
    _ask(user)
    _ask(user, "other@example.org")

    assert [message.to for message in _send()] == [["other@example.org"]]
    assert list(Notice.objects.order_by("pk").values_list("status", flat=True)) == ["given-up", "delivered"]


def test_a_link_is_about_one_address(user: User) -> None:
    _ask(user)
    link = _link(_send()[0], "confirm")
    assert EMAIL not in b64decode(link.split("/")[3].split(":")[0] + "==").decode()
    _ask(user, "other@example.org")

    for path in (link, f"{link}x", "/notices/confirm/nonsense"):
        assert Client().post(path).status_code == 404
    assert NoticeAddress.objects.get(email="other@example.org").confirmed_at is None


@pytest.mark.parametrize("removal", ["null", "deletion"])
def test_a_removed_address_leaves_nothing(user: User, removal: str) -> None:
    _confirmed(user)
    _use_up(user)

    if removal == "null":
        assert _ask(user, None).json()["email"] is None
    else:
        messages.forget(user)

    assert _send() == []
    assert not NoticeAddress.objects.exists()
    assert not Notice.objects.exists()


def test_without_a_mail_server_no_address_is_taken(user: User, settings: Settings) -> None:
    settings.EMAIL_HOST = ""
    response = _ask(user)

    assert (response.status_code, response.json()["code"]) == (409, "email-unavailable")
    assert not NoticeAddress.objects.exists()


@pytest.mark.parametrize("email", ["", "nobody", "a@b@c.example", f"{'a' * 250}@example.org", 5])
def test_an_invalid_address_is_refused(user: User, email: Any) -> None:
    assert _ask(user, email).status_code == 400
    assert not Notice.objects.exists()
