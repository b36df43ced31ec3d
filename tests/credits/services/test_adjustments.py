"""Adjustments that staff ask for: small ones at once, large ones by two, each decided once."""

import random
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone
from pytest_django import Settings

from credits.errors import AdjustmentDecided, KeyConflict, OwnAdjustment
from credits.models import LARGEST_ADJUSTMENT, AdjustmentDecision, AdjustmentRequest, CreditEntry, EntrySource
from credits.queries import balance_of
from credits.services import adjustments, entries
from credits.services.reconciliation import find_differences
from gateway.common.errors import ReasonRequired
from tests.credits.rows import everything, query
from tests.factories import UserFactory
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


def employ() -> User:
    return UserFactory.create(profile_address=None, is_staff=True)


@pytest.fixture(autouse=True)
def limit(settings: Settings) -> int:
    """Return what one person may move, which no test may know beforehand."""
    settings.ADJUSTMENT_APPROVAL_LIMIT = random.randint(100, 900)
    return int(settings.ADJUSTMENT_APPROVAL_LIMIT)


@pytest.fixture
def asker(db: None) -> User:
    return employ()


@pytest.fixture
def second(db: None) -> User:
    return employ()


def ask(user: User, actor: User, credits: int, **changes: str) -> AdjustmentRequest:
    given = {"key": secrets.token_hex(8), "reason": "paid twice", **changes}
    return adjustments.request(user=user, credits=credits, actor=actor, **given)


def rows() -> tuple[object, object]:
    return everything(), query("SELECT * FROM credits_adjustment ORDER BY id")


@pytest.mark.parametrize("sign", [1, -1])
def test_up_to_the_limit_one_person_is_enough(
    user: User, funds: int, asker: User, limit: int, sign: int
) -> None:
    request = ask(user, asker, sign * limit, reason=" paid twice ")
    assert (request.decision, request.needs_second_person, request.decided_by) == ("APPROVED", False, None)
    entry = CreditEntry.objects.get(source=EntrySource.STAFF_ADJUSTMENT)
    assert (entry.amount, entry.actor, entry.reason) == (sign * limit, asker, "paid twice")
    assert (request.entry, entry.key) == (entry, f"adjustment:{request.pk}")
    assert balance_of(user).balance == funds + sign * limit


@pytest.mark.parametrize("sign", [1, -1])
def test_above_the_limit_nothing_moves_until_a_second_person_agrees(
    user: User, funds: int, asker: User, second: User, limit: int, sign: int
) -> None:
    before = everything()
    request = ask(user, asker, sign * (limit + 1))
    assert (request.decision, request.needs_second_person, request.entry) == ("PENDING", True, None)
    assert everything() == before
    approved = adjustments.approve(request_id=request.pk, actor=second)
    assert (approved.decision, approved.decided_by) == (AdjustmentDecision.APPROVED, second)
    assert approved.decided_at is not None
    assert approved.entry is not None
    assert (approved.entry.amount, approved.entry.actor) == (sign * (limit + 1), asker)
    assert balance_of(user).balance == funds + sign * (limit + 1)
    assert find_differences() == []


def test_a_large_sum_in_small_parts_is_a_large_sum(user: User, asker: User, limit: int) -> None:
    parts = [limit - 10, -9, 1, 1]
    assert [ask(user, asker, part).decision for part in parts] == ["APPROVED"] * 3 + ["PENDING"]


def test_other_users_other_people_and_other_days_are_counted_apart(
    user: User, asker: User, second: User, limit: int
) -> None:
    first = ask(user, asker, limit)
    others = [ask(UserFactory.create(), asker, limit), ask(user, second, limit)]
    query("SET LOCAL session_replication_role = replica")  # no trigger keeps the time
    a_day_ago = timezone.now() - timedelta(hours=24, seconds=5)
    AdjustmentRequest.objects.filter(pk=first.pk).update(created_at=a_day_ago)
    query("SET LOCAL session_replication_role = origin")
    others.append(ask(user, asker, limit))
    assert [other.decision for other in others] == ["APPROVED"] * 3


def test_what_a_second_person_approved_does_not_count(
    user: User, asker: User, second: User, limit: int
) -> None:
    adjustments.approve(request_id=ask(user, asker, limit + 1).pk, actor=second)
    assert ask(user, asker, limit).decision == "APPROVED"


def test_nobody_decides_what_they_asked_for(user: User, asker: User, limit: int) -> None:
    request = ask(user, asker, limit + 1)
    before = rows()
    for decide in (adjustments.approve, adjustments.reject):
        with pytest.raises(OwnAdjustment):
            decide(request_id=request.pk, actor=asker)
    assert rows() == before


def test_rejected_it_leaves_the_ledger_alone_for_good(
    user: User, asker: User, second: User, limit: int
) -> None:
    request, before = ask(user, asker, limit + 1), everything()
    rejected = adjustments.reject(request_id=request.pk, actor=second)
    assert (rejected.decision, rejected.decided_by, rejected.entry) == ("REJECTED", second, None)
    with pytest.raises(AdjustmentDecided, match="Rejected"):
        adjustments.approve(request_id=request.pk, actor=second)
    assert everything() == before


def test_approved_it_is_not_rejected_any_more(user: User, asker: User, second: User, limit: int) -> None:
    request = ask(user, asker, limit + 1)
    adjustments.approve(request_id=request.pk, actor=second)
    before = rows()
    for decide in (adjustments.approve, adjustments.reject):
        with pytest.raises(AdjustmentDecided, match="Approved"):
            decide(request_id=request.pk, actor=employ())
    assert rows() == before


def test_a_repeated_key_asks_once(user: User, asker: User, limit: int, key: str) -> None:
    for amount in (limit, limit + 1):
        first = ask(user, asker, amount, key=f"{key}{amount}")
        before = rows()
        assert ask(user, asker, amount, key=f"{key}{amount}") == first
        assert rows() == before


def test_a_key_of_another_request_is_refused(user: User, asker: User, second: User, key: str) -> None:
    ask(user, asker, 5, key=key)
    other = UserFactory.create()
    entries.open_account(user_id=other.pk)
    before = rows()
    for owner, actor, amount in ((user, asker, 6), (user, second, 5), (other, asker, 5)):
        with pytest.raises(KeyConflict):
            ask(owner, actor, amount, key=key)
    assert rows() == before


def test_a_reason_and_a_sum_are_needed(user: User, asker: User) -> None:
    before = rows()
    with pytest.raises(ReasonRequired, match="Say why"):
        ask(user, asker, 5, reason=" \n")
    for amount in (0, LARGEST_ADJUSTMENT + 1, -LARGEST_ADJUSTMENT - 1):
        with pytest.raises(ValueError, match="at least one"):
            ask(user, asker, amount)
    assert rows() == before


def test_the_database_keeps_what_was_asked_and_decided(
    user: User, asker: User, second: User, limit: int
) -> None:
    small, large = ask(user, asker, 5), ask(user, asker, limit + 1)
    table, before = AdjustmentRequest.objects, rows()
    changes: list[tuple[str, Callable[[], object]]] = [
        ("Cannot delete", lambda: table.filter(pk=large.pk).delete()),
        ("Cannot update", lambda: table.filter(pk=small.pk).update(decision="PENDING")),
        ("Cannot update", lambda: table.filter(pk=large.pk).update(credits=5)),
        ("Cannot update", lambda: table.filter(pk=large.pk).update(needs_second_person=False)),
        ("decision_fits", lambda: table.filter(pk=large.pk).update(decision="APPROVED")),
        (
            "decision_fits",
            lambda: table.filter(pk=large.pk).update(decision="REJECTED", decided_at=timezone.now()),
        ),
        (
            "second_person",
            lambda: table.filter(pk=large.pk).update(
                decision="REJECTED", decided_at=timezone.now(), decided_by=asker
            ),
        ),
    ]
    for message, change in changes:
        with pytest.raises(DatabaseError, match=message), transaction.atomic():
            change()
    assert rows() == before


def test_a_large_one_is_never_approved_by_nobody(user: User, asker: User, limit: int) -> None:
    request = ask(user, asker, limit + 1)
    entry = entries.adjust(user=user, credits=limit + 1, key="x", actor=asker, reason="x")
    with pytest.raises(IntegrityError, match="decision_fits"), transaction.atomic():
        AdjustmentRequest.objects.filter(pk=request.pk).update(
            decision="APPROVED", entry=entry, decided_at=timezone.now()
        )


@pytest.mark.django_db(transaction=True)
def test_of_many_who_decide_at_once_one_does() -> None:
    user, asker = UserFactory.create(), employ()
    request = ask(user, asker, 10**6)
    decisions = [
        partial(decide, request_id=request.pk, actor=employ())
        for decide in (adjustments.approve, adjustments.reject)
        for _ in range(4)
    ]
    answers = at_once(random.sample(decisions, len(decisions)), in_transaction=True)
    assert sum(isinstance(answer, AdjustmentDecided) for answer in answers) == len(decisions) - 1
    request.refresh_from_db()
    expected = 10**6 if request.decision == AdjustmentDecision.APPROVED else 0
    assert balance_of(user).balance == expected
    assert CreditEntry.objects.count() == bool(expected)


@pytest.mark.django_db(transaction=True)
def test_parts_asked_for_at_once_stay_within_the_limit_together(limit: int) -> None:
    user, asker = UserFactory.create(), employ()
    part = limit // 3
    at_once([partial(ask, user, asker, part) for _ in range(8)], in_transaction=True)
    alone = limit // part
    assert balance_of(user).balance == alone * part
    assert AdjustmentRequest.objects.filter(decision=AdjustmentDecision.PENDING).count() == 8 - alone


@pytest.mark.django_db(transaction=True)
def test_the_same_page_sent_many_times_at_once_asks_once(limit: int, key: str) -> None:
    user, asker = UserFactory.create(), employ()
    answers = at_once([partial(ask, user, asker, limit, key=key) for _ in range(8)], in_transaction=True)
    assert len({answer.pk for answer in answers if isinstance(answer, AdjustmentRequest)}) == 1
    assert balance_of(user).balance == limit
