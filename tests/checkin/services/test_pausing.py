"""While check-ins are paused."""

from datetime import datetime

import pytest

from checkin import queries
from checkin.errors import CheckInsPaused
from checkin.services.checkins import execute
from gateway.staff.pauses import switch
from rewards.queries import current_rewards
from tests.checkin.rows import everything
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff() -> User:
    """Return a member of staff."""
    return UserFactory.create(profile_address=None, is_staff=True)


def test_check_ins_are_refused_until_they_are_resumed(proven: User, staff: User, now: datetime) -> None:
    switch(queries.CHECK_INS, is_paused=True, actor=staff, reason="a wrong table")
    before = everything()

    with pytest.raises(CheckInsPaused):
        execute(user=proven, now=now)

    assert everything() == before
    board = queries.status_of(user=proven, rewards=current_rewards(user=proven, now=now), now=now)
    assert not board.can_check_in
    switch(queries.CHECK_INS, is_paused=False, actor=staff, reason="the table is right")
    assert execute(user=proven, now=now).attempt == 1
