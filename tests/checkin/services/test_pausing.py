"""Staff pause check-ins by name and with a reason."""

from datetime import datetime

import pytest
from django.db import ProgrammingError, transaction

from checkin import queries
from checkin.errors import CheckInsPaused
from checkin.models import CheckInSwitch
from checkin.services.checkins import execute, switch
from gateway.common.errors import ReasonRequired
from rewards.queries import current_rewards
from tests.checkin.rows import everything
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff() -> User:
    """Return a member of staff."""
    return UserFactory.create(profile_address=None, is_staff=True)


def test_while_paused_nobody_checks_in_and_nothing_changes(proven: User, staff: User, now: datetime) -> None:
    switch(is_open=False, actor=staff, reason="a wrong table")
    before = everything()

    with pytest.raises(CheckInsPaused):
        execute(user=proven, now=now)

    assert everything() == before
    board = queries.status_of(user=proven, rewards=current_rewards(user=proven, now=now), now=now)
    assert not board.can_check_in


def test_the_newest_decision_counts(proven: User, staff: User, now: datetime) -> None:
    for is_open in (False, True, False, True):
        switch(is_open=is_open, actor=staff, reason="back and forth")
        assert queries.is_paused() is not is_open
    assert execute(user=proven, now=now).attempt == 1


def test_who_decided_and_why_is_kept_for_good(staff: User) -> None:
    row = switch(is_open=False, actor=staff, reason=" odd odds ")
    assert (row.actor_id, row.reason, row.is_open) == (staff.pk, "odd odds", False)
    for change in (lambda: CheckInSwitch.objects.update(reason="x"), CheckInSwitch.objects.all().delete):
        with pytest.raises(ProgrammingError), transaction.atomic():
            change()
    assert list(CheckInSwitch.objects.values_list("reason", flat=True)) == ["odd odds"]


@pytest.mark.parametrize("reason", ["", "  "])
def test_without_a_reason_nothing_is_decided(staff: User, reason: str) -> None:
    with pytest.raises(ReasonRequired, match="Say why"):
        switch(is_open=False, actor=staff, reason=reason)
    assert not CheckInSwitch.objects.exists()
