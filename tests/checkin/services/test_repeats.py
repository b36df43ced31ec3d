"""A repeat with the same key returns the same draw and gives nothing twice."""

import secrets
from datetime import datetime, timedelta

import pytest

from checkin.errors import CheckInUnavailable
from checkin.models import CheckIn
from checkin.queries import CHECK_INS
from checkin.services.checkins import execute
from gateway.staff.pauses import switch
from tests.checkin.rows import allow_attempts, everything
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


def test_a_repeat_returns_the_first_check_in_and_changes_nothing(proven: User, now: datetime) -> None:
    allow_attempts(3)
    key = secrets.token_hex(8)
    first = execute(user=proven, now=now, idempotency_key=key)
    before = everything()

    again = execute(user=proven, now=now, idempotency_key=key)

    assert (again, again.possible_results, again.result) == (first, first.possible_results, first.result)
    assert everything() == before


def test_a_repeat_returns_the_first_check_in_without_attempts_left_and_on_later_days(
    proven: User, now: datetime
) -> None:
    key = secrets.token_hex(8)
    first = execute(user=proven, now=now, idempotency_key=key)
    with pytest.raises(CheckInUnavailable):
        execute(user=proven, now=now, idempotency_key=secrets.token_hex(8))

    assert execute(user=proven, now=now, idempotency_key=key) == first
    assert execute(user=proven, now=now + timedelta(days=2), idempotency_key=key) == first
    assert CheckIn.objects.count() == 1


def test_a_repeat_returns_the_first_check_in_while_check_ins_are_paused(proven: User, now: datetime) -> None:
    key = secrets.token_hex(8)
    first = execute(user=proven, now=now, idempotency_key=key)
    staff = UserFactory.create(profile_address=None, is_staff=True)
    switch(CHECK_INS, is_paused=True, actor=staff, reason="a look at the tables")

    assert execute(user=proven, now=now, idempotency_key=key) == first


def test_another_key_is_another_attempt(proven: User, now: datetime) -> None:
    allow_attempts(2)
    drawn = [execute(user=proven, now=now, idempotency_key=secrets.token_hex(8)) for _ in range(2)]
    assert [check_in.attempt for check_in in drawn] == [1, 2]


def test_check_ins_without_a_key_do_not_repeat_each_other(proven: User, now: datetime) -> None:
    allow_attempts(2)
    assert execute(user=proven, now=now) != execute(user=proven, now=now)


def test_a_key_is_known_to_its_user_alone(proven: User, user: User, now: datetime) -> None:
    key = secrets.token_hex(8)
    mine = execute(user=proven, now=now, idempotency_key=key)
    yours = execute(user=user, now=now, idempotency_key=key)
    assert (mine.user_id, yours.user_id) == (proven.pk, user.pk)
    assert mine != yours


def test_a_refusal_does_not_use_the_key(proven: User, now: datetime) -> None:
    key = secrets.token_hex(8)
    execute(user=proven, now=now)
    with pytest.raises(CheckInUnavailable):
        execute(user=proven, now=now, idempotency_key=key)

    tomorrow = execute(user=proven, now=now + timedelta(days=1), idempotency_key=key)

    assert tomorrow.day == now.date() + timedelta(days=1)
