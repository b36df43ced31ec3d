"""
Which reads go to a standby, and which never do.

Here it is another database of the same server, which has what the migrations left, and takes no writes. Rows of a test
that a user sees were read from the primary.
"""

import copy
import random
import secrets
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connections, transaction
from django.db.utils import OperationalError
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now
from rest_framework.test import APIClient

from devstack.services.postgres import DATABASE
from devstack.services.stack import Services
from gateway.common.db import REPLICA, reading_from_replica
from rewards.models import Badge
from tests.factories import UserFactory
from tests.fakes.profiles import Profile
from tests.portal.history_rows import earned as earned_by
from tests.staff import browser_of, member
from tests.users.auth_client import signed_in
from tests.users.conftest import chain, client, profile, trusted, wallet
from users.models import User

__all__ = ["chain", "client", "profile", "trusted", "wallet"]
pytestmark = pytest.mark.django_db(databases=["default", REPLICA])
PEOPLE = reverse("admin:users_user_changelist")
ENTRIES = reverse("admin:credits_creditentry_changelist")


@pytest.fixture(scope="module", autouse=True)
def standby(services: Services, django_db_setup: None) -> Iterator[str]:
    """Have a standby, and return its name."""
    place = copy.deepcopy(connections["default"].settings_dict)
    place["NAME"], place["HOST"] = DATABASE, str(services.postgres.socket_directory)
    place["OPTIONS"]["options"] = "-c default_transaction_read_only=on"
    connections.settings[REPLICA] = place
    yield REPLICA
    connections[REPLICA].close()
    del connections[REPLICA], connections.settings[REPLICA]


@pytest.fixture
def earned() -> int:
    return random.randint(1, 500)


@pytest.fixture
def headers(profile: Profile, earned: int) -> dict[str, Any]:
    """Return the headers of a signed-in user who has earned something."""
    access = signed_in(profile).access
    user = User.objects.get(profile_address=profile.profile_address)
    earned_by(user, earned)
    return {"HTTP_AUTHORIZATION": f"Bearer {access}"}


@pytest.fixture
def user_on_standby(headers: dict[str, Any], profile: Profile) -> None:
    """The standby has the user, and nothing that the user earned since."""
    user = User.objects.get(profile_address=profile.profile_address)
    with connections[REPLICA].cursor() as cursor:
        cursor.execute("SET TRANSACTION READ WRITE")
        user.save(using=REPLICA, force_insert=True)
        cursor.execute("SET TRANSACTION READ ONLY")


def _credits(client: APIClient, headers: dict[str, Any]) -> int:
    return int(client.get("/api/user/dashboardInfo", **headers).json()["userInfo"]["credits"])


def _sees(browser: Client, person: User) -> bool:
    response = browser.get(PEOPLE)
    assert response.status_code == 200
    return str(person.profile_address) in response.content.decode()


@pytest.mark.usefixtures("user_on_standby")
def test_the_dashboard_is_read_from_the_standby(client: APIClient, headers: dict[str, Any]) -> None:
    assert _credits(client, headers) == 0


def test_a_user_missing_on_the_standby_reads_the_dashboard_from_the_primary(
    client: APIClient, headers: dict[str, Any], earned: int
) -> None:
    assert _credits(client, headers) == earned


@pytest.mark.parametrize("history", ["earnings", "transactions"])
def test_histories_are_read_from_the_standby(
    client: APIClient, headers: dict[str, Any], history: str
) -> None:
    body = client.get(f"/api/user/{history}", **headers).json()
    assert body["results"] == []


def test_the_balance_in_short_is_read_from_the_primary(
    client: APIClient, headers: dict[str, Any], earned: int
) -> None:
    assert client.get("/api/user/account", **headers).json()["balance"] == earned


def test_concurrent_writes_and_locks_use_the_primary(standby: str) -> None:
    person = UserFactory.create()
    with reading_from_replica():
        assert not User.objects.filter(pk=person.pk).exists()
        with transaction.atomic():
            assert User.objects.select_for_update().get(pk=person.pk) == person
        badge = Badge.objects.first()
        assert badge is not None
        assert badge._state.db == standby
        badge.name = secrets.token_hex(4)
        badge.save()
    assert Badge.objects.get(pk=badge.pk).name == badge.name


def test_the_standby_takes_no_writes(standby: str) -> None:
    with pytest.raises(OperationalError, match="read-only"):
        Badge.objects.using(standby).update(name="")


def test_staff_read_pages_from_the_standby_and_after_a_change_from_the_primary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person, browser = UserFactory.create(), browser_of(member("support"))
    assert not _sees(browser, person)

    browser.post(PEOPLE, {})
    assert _sees(browser, person)

    monkeypatch.setattr(settings, "DATABASE_REPLICA_SECONDS", -1)
    assert not _sees(browser, person)


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_an_export_is_read_from_the_standby_to_its_end(kind: str) -> None:
    browser = browser_of(member("finance"))
    primary, standby = (CaptureQueriesContext(connections[alias]) for alias in ("default", REPLICA))
    with primary, standby:
        list(cast("Iterable[bytes]", browser.get(f"{ENTRIES}export/{kind}/")))

    assert not any("credits_entry" in query["sql"] for query in primary)
    assert any("credits_entry" in query["sql"] for query in standby)


def test_logged_out_and_demoted_staff_are_refused_at_once() -> None:
    first, second = member("support"), member("support")
    browsers = [browser_of(person) for person in (first, second)]
    assert [browser.get(PEOPLE).status_code for browser in browsers] == [200, 200]

    first.groups.clear()
    Session.objects.filter(session_key=browsers[1].session.session_key).update(expire_date=now())

    assert [browser.get(PEOPLE).status_code for browser in browsers] == [403, 302]
