"""Many check-ins at the same moment, each on a connection of its own."""

import random
import secrets
from collections import Counter
from datetime import datetime, timedelta
from functools import partial

import pytest

from checkin.errors import CheckInUnavailable
from checkin.models import CheckIn, DailySeed
from checkin.services import seeds
from checkin.services.checkins import execute
from checkin.services.verification import verify_day
from credits.models import CreditAccount, CreditEntry, EntrySource
from credits.services.reconciliation import find_differences
from gateway.common.errors import DomainError
from rewards.models import ExperienceEntry, Modifier
from tests.checkin.conftest import earner
from tests.checkin.items import drop_of
from tests.checkin.rows import allow_attempts
from tests.credits.causes import causeless
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db(transaction=True)
_CALLERS = 20


@pytest.fixture
def attempts() -> int:
    """Let a day have some attempts."""
    chosen = random.randint(2, 6)
    allow_attempts(chosen)
    return chosen


def test_concurrent_check_ins_use_exactly_the_attempts_of_the_day(now: datetime, attempts: int) -> None:
    user = earner()
    before = CreditAccount.objects.get(user=user)

    results = at_once([partial(execute, user=user, now=now)] * _CALLERS)

    drawn = [result for result in results if isinstance(result, CheckIn)]
    assert sorted(check_in.attempt for check_in in drawn) == list(range(1, attempts + 1))
    assert Counter(map(type, results)) == {CheckIn: attempts, CheckInUnavailable: _CALLERS - attempts}
    assert set(CheckIn.objects.all()) == set(drawn)
    _every_drop_took_effect_once(user, drawn, before)


def test_many_with_one_key_get_one_drop(now: datetime, attempts: int) -> None:
    user = earner()
    before = CreditAccount.objects.get(user=user)
    call = partial(execute, user=user, now=now, idempotency_key=secrets.token_hex(8))

    results = at_once([call] * _CALLERS)

    [check_in] = CheckIn.objects.all()
    assert results == [check_in] * _CALLERS
    shown = {
        str((result.possible_results, result.result)) for result in results if isinstance(result, CheckIn)
    }
    assert shown == {str((check_in.possible_results, check_in.result))}
    _every_drop_took_effect_once(user, [check_in], before)


def test_a_key_used_on_both_sides_of_midnight_gets_one_drop(now: datetime, attempts: int) -> None:
    user = earner()
    key = secrets.token_hex(8)
    calls = [
        partial(execute, user=user, now=now + timedelta(days=number % 2), idempotency_key=key)
        for number in range(20)
    ]
    results = at_once(calls)
    assert results == [CheckIn.objects.get()] * 20


def test_keys_and_none_mixed_use_exactly_the_attempts(now: datetime, attempts: int) -> None:
    user = earner()
    before = CreditAccount.objects.get(user=user)
    keys = [secrets.token_hex(8) for _ in range(attempts + 2)]
    sent = [*keys, ""] * 3
    random.shuffle(sent)
    results = at_once([partial(execute, user=user, now=now, idempotency_key=key) for key in sent])

    drawn = {result for result in results if isinstance(result, CheckIn)}
    assert drawn == set(CheckIn.objects.all())
    assert sorted(check_in.attempt for check_in in drawn) == list(range(1, attempts + 1))
    _every_drop_took_effect_once(user, list(drawn), before)


def test_concurrent_users_do_not_block_one_another_and_share_the_seed(now: datetime) -> None:
    allow_attempts(1)
    users = [earner() for _ in range(10)]
    results = at_once([partial(execute, user=user, now=now) for user in users for _ in range(3)])

    drawn = [result for result in results if isinstance(result, CheckIn)]
    assert {check_in.user_id for check_in in drawn} == {user.pk for user in users}
    assert len(drawn) == len(users)
    assert {check_in.seed for check_in in drawn} == {DailySeed.objects.get()}


def test_after_the_storm_the_day_recomputes(now: datetime, attempts: int) -> None:
    users = [earner() for _ in range(5)]
    at_once([partial(execute, user=user, now=now) for user in users for _ in range(8)])
    seeds.commit_and_reveal(now=now + timedelta(days=2))

    verification = verify_day(now.date())

    assert (verification.check_ins, verification.differences) == (5 * attempts, [])


def test_one_seed_is_made_for_a_day_however_many_need_it(now: datetime) -> None:
    results: list[int | DomainError] = at_once([partial(seeds.commit_and_reveal, now=now)] * 12)
    assert results == [0] * 12
    assert DailySeed.objects.count() == 2


def _every_drop_took_effect_once(user: User, drawn: list[CheckIn], before: CreditAccount) -> None:
    drops = {check_in.effect_key: drop_of(check_in.result) for check_in in drawn}
    won = {
        name: {key: drop for key, drop in drops.items() if drop.drop_type == name}
        for name in ("CREDITS", "EXPERIENCE")
    }
    posted = dict(CreditEntry.objects.filter(source="CHECK_IN").values_list("key", "amount"))
    learnt = dict(ExperienceEntry.objects.filter(cause="CHECK_IN").values_list("key", "base"))
    raised = {modifier.key: modifier for modifier in Modifier.objects.filter(user=user)}
    assert posted == {key: drop.value for key, drop in won["CREDITS"].items()}
    assert learnt == {key: drop.value for key, drop in won["EXPERIENCE"].items()}
    assert set(raised) == set(drops) - set(posted) - set(learnt)
    assert all(
        (row.modifier_type, row.value) == (drops[key].drop_type, drops[key].value)
        for key, row in raised.items()
    )
    assert CreditAccount.objects.get(user=user).balance == before.balance + sum(posted.values())
    assert find_differences() == []
    assert causeless(EntrySource.CHECK_IN) == []
