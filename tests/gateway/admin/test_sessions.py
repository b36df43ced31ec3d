"""A login ends when it is idle, and after a working day in any case."""

from datetime import timedelta

import pytest
import time_machine
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.staff import log_in_staff

pytestmark = pytest.mark.django_db
USERS = "/admin/users/user/"
IDLE, DAY = timedelta(seconds=settings.STAFF_IDLE_SECONDS), timedelta(seconds=settings.SESSION_COOKIE_AGE)
SECOND = timedelta(seconds=1)


def test_defaults_are_half_an_hour_and_a_working_day() -> None:
    assert (timedelta(minutes=30), timedelta(hours=8)) == (IDLE, DAY)


def test_an_idle_login_ends_with_an_explanation(client: Client) -> None:
    with time_machine.travel(timezone.now(), tick=False) as clock:
        log_in_staff(client)
        clock.shift(IDLE - SECOND)
        assert client.get(USERS).status_code == 200

        clock.shift(IDLE)
        response = client.get(USERS, follow=True)

    assert response.redirect_chain == [(f"/admin/login/?next={USERS}", 302)]
    assert "because you were inactive" in response.content.decode()
    assert not any("_auth_user_id" in session.get_decoded() for session in Session.objects.all())


def test_a_busy_login_ends_after_the_working_day(client: Client) -> None:
    with time_machine.travel(timezone.now(), tick=False) as clock:
        log_in_staff(client)
        step = IDLE - SECOND
        for _ in range(DAY // step):
            clock.shift(step)
            assert client.get(USERS).status_code == 200

        clock.shift(step)
        assert client.get(USERS).status_code == 302


def test_a_late_post_changes_nothing(client: Client) -> None:
    with time_machine.travel(timezone.now(), tick=False) as clock:
        person = log_in_staff(client)
        clock.shift(IDLE)
        response = client.post(f"{USERS}{person.pk}/change/", {"is_active": ""})

    person.refresh_from_db()
    assert response.status_code == 302
    assert person.is_active


def test_a_new_login_begins_a_new_day(client: Client) -> None:
    with time_machine.travel(timezone.now(), tick=False) as clock:
        person = log_in_staff(client)
        clock.shift(DAY)
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")

        assert client.session["staff_began_at"] == int(timezone.now().timestamp())


def test_a_wallet_without_a_cookie_costs_no_session(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        client.get("/problems/")


@pytest.mark.parametrize("mark", ["staff_began_at", "staff_seen_at"])
def test_a_login_of_unknown_age_is_over(client: Client, mark: str) -> None:
    log_in_staff(client)
    session = client.session
    del session[mark]
    session.save()

    assert client.get(USERS).status_code == 302
