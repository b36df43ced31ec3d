"""Capturing and releasing holds."""

import random
from functools import partial

import pytest

from credits.errors import HoldReleased
from credits.models import CreditEntry, CreditHold, EntrySource, HoldStatus
from credits.queries import balance_of
from credits.services import holds as credits_holds
from credits.services.reconciliation import find_differences
from tests.credits.holding import capture, place_hold
from tests.credits.rows import everything, query
from tests.threads import at_once, waits_for_this_transaction
from users.models import User


@pytest.fixture
def held(user: User, key: str) -> int:
    """Return the id of an open hold of 100 credits."""
    return place_hold(user=user, credits=100, key=key).hold.pk


@pytest.mark.parametrize(
    ("cost", "paid"), [(1, 1), (100, 100), (10**10, 100)], ids=["less", "all", "at most what is held"]
)
def test_a_capture_charges_the_real_cost_and_drops_the_hold(
    user: User, held: int, funds: int, cost: int, paid: int
) -> None:
    entry = capture(hold_id=held, credits=cost)

    assert entry is not None
    assert (entry.amount, entry.balance_before, entry.balance_after) == (-paid, funds, funds - paid)
    assert (entry.source, entry.account_version) == (EntrySource.RELAY_TRANSACTION, 2)
    hold = CreditHold.objects.get(pk=held)
    assert (hold.status, hold.captured_amount, hold.amount, hold.entry) == (
        HoldStatus.CAPTURED,
        paid,
        100,
        entry,
    )
    assert hold.closed_at is not None
    assert balance_of(user) == (funds - paid, 0, funds - paid)
    assert find_differences() == []


def test_other_holds_stay_when_one_is_captured(user: User, held: int, funds: int, key: str) -> None:
    place_hold(user=user, credits=7, key=key + "-other")
    capture(hold_id=held, credits=60)
    assert balance_of(user) == (funds - 60, 7, funds - 67)


def test_a_second_capture_returns_the_first_entry(held: int) -> None:
    first = capture(hold_id=held, credits=60)
    before = everything()
    assert capture(hold_id=held, credits=60) == first
    assert capture(hold_id=held, credits=99) == first
    assert capture(hold_id=held, credits=0) == first
    assert everything() == before


def test_a_capture_of_nothing_releases(user: User, held: int, funds: int) -> None:
    assert capture(hold_id=held, credits=0) is None
    assert CreditHold.objects.get(pk=held).status == HoldStatus.RELEASED
    assert balance_of(user) == (funds, 0, funds)
    before = everything()
    assert capture(hold_id=held, credits=0) is None
    assert everything() == before


def test_a_released_hold_cannot_be_captured(held: int) -> None:
    assert credits_holds.release(hold_id=held) is True
    before = everything()
    with pytest.raises(HoldReleased) as refusal:
        capture(hold_id=held, credits=1)
    assert refusal.value.members == {"holdId": held}
    assert everything() == before


def test_a_negative_capture_is_refused(held: int) -> None:
    before = everything()
    with pytest.raises(ValueError, match="negative"):
        capture(hold_id=held, credits=-1)
    assert everything() == before


def test_a_release_gives_the_credits_back_once(user: User, held: int, funds: int) -> None:
    assert credits_holds.release(hold_id=held) is True
    hold = CreditHold.objects.get(pk=held)
    assert (hold.status, hold.captured_amount, hold.entry) == (HoldStatus.RELEASED, None, None)
    assert balance_of(user) == (funds, 0, funds)
    before = everything()
    assert credits_holds.release(hold_id=held) is False
    assert everything() == before


def test_a_captured_hold_is_not_released(held: int) -> None:
    capture(hold_id=held, credits=60)
    before = everything()
    assert credits_holds.release(hold_id=held) is False
    assert everything() == before


def test_capture_and_release_are_one_statement_each(
    user: User, held: int, key: str, django_assert_num_queries: type
) -> None:
    other = place_hold(user=user, credits=1, key=key + "-other").hold.pk
    with django_assert_num_queries(1):
        credits_holds.close(costs={held: 60})
    with django_assert_num_queries(1):
        credits_holds.release(hold_id=other)


def test_16_concurrent_captures_charge_once(
    transactional_db: None, user: User, held: int, funds: int
) -> None:
    entries = at_once(
        [partial(capture, hold_id=held, credits=60 + n) for n in range(16)], in_transaction=True
    )
    (first,) = CreditEntry.objects.filter(source=EntrySource.RELAY_TRANSACTION)
    assert entries == [first] * 16
    assert balance_of(user) == (funds + first.amount, 0, funds + first.amount)
    assert find_differences() == []


def test_a_capture_racing_a_release_settles_once(
    transactional_db: None, user: User, funds: int, key: str
) -> None:
    holds = [place_hold(user=user, credits=10, key=f"{key}:{n}").hold.pk for n in range(20)]
    outcomes = at_once(
        [call for pk in holds for call in random.sample([partial(_captures, pk), partial(_releases, pk)], 2)],
        in_transaction=True,
    )
    captured = sum(outcome == "captured" for outcome in outcomes)
    released = sum(outcome == "released" for outcome in outcomes)
    assert captured + released == 20
    assert query("SELECT count(*) FROM credits_hold WHERE status = 'RELEASED'") == [(released,)]
    assert balance_of(user) == (funds - 9 * captured, 0, funds - 9 * captured)
    assert find_differences() == []


def _captures(hold_id: int) -> str:
    return "captured" if capture(hold_id=hold_id, credits=9) else "nothing"


def _releases(hold_id: int) -> str:
    return "released" if credits_holds.release(hold_id=hold_id) else "nothing"


def test_a_capture_that_waited_for_the_release_is_refused(
    transactional_db: None, user: User, held: int, funds: int
) -> None:
    with waits_for_this_transaction(
        partial(capture, hold_id=held, credits=60), in_transaction=True
    ) as waited:
        credits_holds.release(hold_id=held)
    assert isinstance(waited.result(), HoldReleased)
    assert balance_of(user) == (funds, 0, funds)


def test_a_release_that_waited_for_the_capture_gives_nothing_back(
    transactional_db: None, user: User, held: int, funds: int
) -> None:
    with waits_for_this_transaction(
        partial(credits_holds.release, hold_id=held), in_transaction=True
    ) as waited:
        capture(hold_id=held, credits=60)
    assert waited.result() is False
    assert balance_of(user) == (funds - 60, 0, funds - 60)


def test_a_capture_that_waited_for_a_raise_drops_the_raised_amount(
    transactional_db: None, user: User, held: int, funds: int
) -> None:
    with waits_for_this_transaction(
        partial(capture, hold_id=held, credits=60), in_transaction=True
    ) as waited:
        credits_holds.raise_hold(hold_id=held, credits=250, badge_debt=0)
    assert isinstance(waited.result(), CreditEntry)
    assert balance_of(user) == (funds - 60, 0, funds - 60)
    assert find_differences() == []
