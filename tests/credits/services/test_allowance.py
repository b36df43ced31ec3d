"""Writing down the allowance of a paid period."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from credits.models import Allowance
from credits.queries import AllowanceView, period_runs, running_allowance
from gateway.common import db
from tests.credits.allowances import set_allowance
from tests.factories import UserFactory
from users.models import User

START = datetime(2031, 1, 31, 12, tzinfo=UTC) + timedelta(seconds=random.randrange(10**7))
END = START + timedelta(days=31)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
CREDITS = random.randint(1, 10**9)


@pytest.fixture
def subscriber(db: None) -> User:
    """Return a user whose subscription renews."""
    user = UserFactory.create()
    set_allowance(user=user, credits=CREDITS, starts_at=START, ends_at=END, renews=True)
    return user


def current_allowance(*, user: User, now: datetime) -> AllowanceView | None:
    """Return the allowance that runs, for which Python and SQL agree."""
    allowance = running_allowance(Allowance.objects.filter(user=user).first(), now=now)
    (running,) = db.only_row(_RUNNING, {"user": user.pk, "now": now})
    assert running == (allowance is not None)
    return allowance


_RUNNING = f"""
SELECT count(*) FROM credits_allowance AS allowance
WHERE user_id = %(user)s AND {period_runs(now="%(now)s")}
"""  # noqa: S608 - an expression of our own


@pytest.mark.django_db
def test_a_user_without_a_paid_period_has_no_allowance() -> None:
    assert current_allowance(user=UserFactory.create(), now=START) is None


@pytest.mark.parametrize("now", [START, END - SECOND])
def test_an_allowance_runs_within_its_period(subscriber: User, now: datetime) -> None:
    assert current_allowance(user=subscriber, now=now) == AllowanceView(credits=CREDITS, ends_at=END)
    assert current_allowance(user=UserFactory.create(), now=now) is None


def test_a_renewing_allowance_awaits_its_renewal_and_then_ends(subscriber: User) -> None:
    next_end = END + timedelta(days=30)
    set_allowance(
        user=subscriber, credits=CREDITS, starts_at=START, ends_at=END, renews=True, resets_at=next_end
    )
    assert current_allowance(user=subscriber, now=END - SECOND) == AllowanceView(credits=CREDITS, ends_at=END)
    in_grace = AllowanceView(credits=CREDITS, ends_at=next_end)
    assert current_allowance(user=subscriber, now=END) == in_grace
    assert current_allowance(user=subscriber, now=END + 72 * HOUR - SECOND) == in_grace
    assert current_allowance(user=subscriber, now=END + 72 * HOUR) is None


def test_a_cancelling_allowance_ends_with_its_period(subscriber: User) -> None:
    set_allowance(user=subscriber, credits=CREDITS, starts_at=START, ends_at=END, renews=False)
    assert current_allowance(user=subscriber, now=END - SECOND) is not None
    assert current_allowance(user=subscriber, now=END) is None


def test_the_next_period_replaces_the_one_before(subscriber: User) -> None:
    after = END + timedelta(days=28)
    set_allowance(user=subscriber, credits=7, starts_at=END, ends_at=after, renews=False)
    assert current_allowance(user=subscriber, now=END) == AllowanceView(credits=7, ends_at=after)
    assert Allowance.objects.count() == 1


def test_an_earlier_period_replaces_one_that_no_longer_counts(subscriber: User) -> None:
    earlier = START - timedelta(days=31)
    set_allowance(user=subscriber, credits=1, starts_at=earlier, ends_at=START, renews=True)
    assert Allowance.objects.get().starts_at == earlier
