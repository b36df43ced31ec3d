"""`manage.py verify_draws DATE`: the exit code tells whether a day was drawn fairly."""

import secrets
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from checkin.services import seeds
from checkin.services.checkins import execute
from credits.services import causes
from tests.checkin.conftest import earner
from tests.database import tamper

pytestmark = pytest.mark.django_db


@pytest.fixture
def day(long_ago: datetime, now: datetime) -> str:
    """Let three users check in on a day whose seed is public."""
    for _ in range(3):
        execute(user=earner(), now=long_ago)
    seeds.commit_and_reveal(now=now)
    return long_ago.date().isoformat()


def verify(day: str) -> str:
    """Run the command and return what it prints."""
    out = StringIO()
    call_command("verify_draws", day, stdout=out)
    return out.getvalue()


def test_a_verified_day_is_reported_with_its_number_of_draws(day: str) -> None:
    assert verify(day) == f"No difference: 3 draws of {day} recomputed.\n"


def test_a_difference_is_shown_and_exits_1(day: str) -> None:
    out = StringIO()
    tamper("UPDATE checkin_dailyseed SET revealed_seed = %s WHERE day = %s", secrets.token_hex(32), day)
    with pytest.raises(CommandError, match="differences") as stopped:
        call_command("verify_draws", day, stdout=out)
    assert stopped.value.returncode == 1
    assert "the day: commitment is" in out.getvalue()
    assert "possible results is" in out.getvalue()


def test_the_nightly_comparison_recomputes_new_days_and_old_ones_in_turn(day: str, now: datetime) -> None:
    def rules(at: datetime) -> set[str]:
        run = causes.reconcile(now=at)
        assert run is not None
        return {finding["rule"] for finding in run.findings} - {"an entry has a cause"}

    drawn = "a check-in is what its seed draws"
    assert rules(timezone.now()) == set()
    tamper("UPDATE checkin_checkin SET result_place = result_place + 1 WHERE day = %s", day)
    found = [drawn in rules(timezone.now() + timedelta(days=days)) for days in range(95)]
    assert found[:2] == [True, True]
    assert sum(found[3:48]) == sum(found[48:93]) == 1


def test_a_day_whose_seed_is_not_revealed_yet_exits_2(now: datetime, day: str) -> None:
    seeds.commit_and_reveal(now=now)
    for other in (now, now - timedelta(days=300)):
        with pytest.raises(CommandError, match="No seed of") as stopped:
            verify(other.date().isoformat())
        assert stopped.value.returncode == 2


def test_a_seed_that_is_overdue_exits_1() -> None:
    today = timezone.now().date()
    for age, code in ((1, 2), (2, 1), (3, 1)):
        late = today - timedelta(days=age)
        seeds.seed_of(late)
        with pytest.raises(CommandError, match="No seed of") as stopped:
            verify(late.isoformat())
        assert stopped.value.returncode == code


def test_an_invalid_date_is_refused() -> None:
    with pytest.raises(CommandError):
        verify("yesterday")
