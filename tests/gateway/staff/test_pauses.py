"""Staff pause parts of the service, and resume them, each with a reason that stays on record."""

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from gateway.common.errors import ReasonRequired
from gateway.staff.models import Pause
from gateway.staff.pauses import is_paused, is_paused_sql, switch
from tests.credits.rows import query
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(db: None) -> User:
    return UserFactory.create(profile_address=None, is_staff=True)


def test_the_newest_decision_about_a_part_applies_to_that_part_only(staff: User) -> None:
    assert not is_paused("one")
    for decision in (True, False, True):
        switch("one", is_paused=decision, actor=staff, reason="back and forth")
        assert is_paused("one") is decision
        assert query(f"SELECT {is_paused_sql('one')}, {is_paused_sql('other')}") == [(decision, False)]
        assert not is_paused("other")
    switch("other", is_paused=False, actor=staff, reason="to be sure")
    assert is_paused("one")


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_decision_has_a_reason(staff: User, reason: str) -> None:
    with pytest.raises(ReasonRequired, match="Give a reason"):
        switch("one", is_paused=True, actor=staff, reason=reason)
    assert not Pause.objects.exists()
    with pytest.raises(IntegrityError, match="pause_has_reason"), transaction.atomic():
        Pause.objects.create(name="one", is_paused=True, actor=staff, reason="")


def test_actor_and_reason_of_a_decision_stay_on_record(staff: User) -> None:
    row = switch("one", is_paused=True, actor=staff, reason=" maintenance ")
    assert (row.name, row.is_paused, row.actor_id, row.reason) == ("one", True, staff.pk, "maintenance")
    for change in (lambda: Pause.objects.update(is_paused=False), Pause.objects.all().delete):
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            change()
    assert is_paused("one")
