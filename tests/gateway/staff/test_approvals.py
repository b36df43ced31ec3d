"""Approvals: small things at once, large ones by two of different roles, each decided once and within ceilings."""

import random
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import DatabaseError, transaction
from django.utils import timezone
from pytest_django import Settings

from credits.models import LARGEST_ADJUSTMENT, CreditEntry, EntrySource
from credits.queries import balance_of
from credits.services import adjustments, entries
from credits.services.reconciliation import find_differences
from gateway.common.errors import ReasonRequired
from gateway.staff import approvals
from gateway.staff.approval_kinds import (
    AboveCeiling,
    AnotherRoleDecides,
    OwnRequest,
    RequestConflict,
    RequestDecided,
)
from gateway.staff.audit import details_of
from gateway.staff.models import ApprovalRequest
from tests.credits.rows import everything, query
from tests.database import tamper
from tests.factories import UserFactory
from tests.staff import browser_of, member
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def limit(settings: Settings) -> int:
    """Return what a clerk may move, which no test may know beforehand; a person gets as much, a day twice it."""
    alone = random.randint(100, 900)
    limits = {
        "actor": alone,
        "person": alone,
        "day": 2 * alone,
        "ceiling": 20 * alone,
        "ceiling_day": 30 * alone,
    }
    settings.APPROVAL_LIMITS = {**settings.APPROVAL_LIMITS, "credits": limits}
    return alone


@pytest.fixture
def user(db: None) -> User:
    return UserFactory.create()


@pytest.fixture
def asker(db: None) -> User:
    return member("support")


@pytest.fixture
def second(db: None) -> User:
    return member("finance")


def ask(user: User, actor: User, credits: int, **changes: str) -> ApprovalRequest:
    given = {"key": secrets.token_hex(8), "reason": "paid twice", **changes}
    return adjustments.request(user=user, credits=credits, actor=actor, **given)


def approve(request: ApprovalRequest, actor: User) -> ApprovalRequest:
    approvals.approve(request_id=request.pk, actor=actor, reason="agreed")
    request.refresh_from_db()
    return request


def reject(request: ApprovalRequest, actor: User) -> ApprovalRequest:
    approvals.reject(request_id=request.pk, actor=actor, reason="not agreed")
    request.refresh_from_db()
    return request


def rows() -> tuple[object, object]:
    return everything(), query("SELECT * FROM gateway_admin_approvalrequest ORDER BY id")


def actions() -> list[str]:
    return [details_of(entry)["action"] for entry in LogEntry.objects.order_by("pk")]


@pytest.mark.parametrize("sign", [1, -1])
def test_up_to_the_limit_one_staff_member_is_enough(user: User, asker: User, limit: int, sign: int) -> None:
    request = ask(user, asker, sign * limit, reason=" paid twice ")
    assert (request.status, request.needs_second_person, request.decided_by) == ("done", False, None)
    entry = CreditEntry.objects.get(source=EntrySource.STAFF_ADJUSTMENT)
    assert (entry.amount, entry.actor, entry.reason) == (sign * limit, asker, "paid twice")
    assert entry.key == f"approval:{request.pk}"
    assert actions() == ["adjust_credits asked", "adjust_credits carried out"]


@pytest.mark.parametrize("sign", [1, -1])
def test_above_it_nothing_moves_until_another_role_agrees(
    user: User, asker: User, second: User, limit: int, sign: int
) -> None:
    before = everything()
    request = ask(user, asker, sign * (limit + 1))
    assert (request.status, request.needs_second_person) == ("waiting", True)
    assert everything() == before
    assert actions() == ["adjust_credits asked"]
    assert (approve(request, second).status, balance_of(user).balance) == ("done", sign * (limit + 1))
    assert CreditEntry.objects.get().actor == asker
    assert actions() == ["adjust_credits asked", "adjust_credits carried out"]
    assert [entry.user for entry in LogEntry.objects.order_by("pk")] == [asker, second]
    assert find_differences() == []


def test_clerk_user_and_day_are_each_counted(asker: User, limit: int) -> None:
    first, other, colleagues = (
        UserFactory.create(),
        UserFactory.create(),
        [member("support") for _ in range(3)],
    )
    requests = [
        ask(first, asker, limit - 5),
        ask(other, asker, -6),  # the clerk has 5 left, for any person and either way
        ask(first, colleagues[0], 6),  # the person has 5 left, for any clerk
        ask(other, colleagues[0], limit),
        ask(UserFactory.create(), colleagues[1], 6),  # 5 of the day are left
        ask(UserFactory.create(), colleagues[2], 5),
    ]
    assert [request.status for request in requests] == [
        "done",
        "waiting",
        "waiting",
        "done",
        "waiting",
        "done",
    ]


def test_earlier_days_and_approved_requests_do_not_count(
    user: User, asker: User, second: User, limit: int
) -> None:
    approve(ask(user, asker, limit + 1), second)
    first = ask(user, asker, limit)
    assert first.status == "done"
    a_day_ago = timezone.now() - timedelta(hours=24, seconds=5)
    tamper("UPDATE gateway_admin_approvalrequest SET decided_at = %s WHERE id = %s", a_day_ago, first.pk)
    assert ask(user, asker, limit).status == "done"


def test_ceilings_apply_even_with_approval(user: User, asker: User, second: User, limit: int) -> None:
    before = rows()
    with pytest.raises(AboveCeiling):
        ask(user, asker, 20 * limit + 1)
    assert rows() == before
    approve(ask(user, asker, 20 * limit), second)
    late = ask(user, asker, 10 * limit + 1)
    with pytest.raises(AboveCeiling, match="24 hours"):
        approve(late, second)
    assert balance_of(user).balance == 20 * limit
    late.refresh_from_db()
    assert late.status == "waiting"


@pytest.mark.parametrize("role", ["support", "superuser"])
def test_a_requester_cannot_decide_their_own_request(user: User, role: str, limit: int) -> None:
    asker = member(role)
    request = ask(user, asker, limit + 1)
    before = rows()
    for decide in (approve, reject):
        with pytest.raises(OwnRequest):
            decide(request, asker)
    assert rows() == before


@pytest.mark.parametrize(
    ("asks", "decides"),
    [("support", "support"), ("support", "operations"), ("superuser", "superuser")],
)
def test_another_role_decides(user: User, asks: str, decides: str, limit: int) -> None:
    request = ask(user, member(asks), limit + 1)
    before = rows()
    for decide in (approve, reject):
        with pytest.raises(AnotherRoleDecides):
            decide(request, member(decides))
    assert rows() == before


def test_a_rejection_is_final(user: User, asker: User, second: User, limit: int) -> None:
    request, before = ask(user, asker, limit + 1), everything()
    rejected = reject(request, second)
    assert (rejected.status, rejected.decided_by, rejected.decision_reason) == (
        "rejected",
        second,
        "not agreed",
    )
    for decide in (approve, reject):
        with pytest.raises(RequestDecided, match="rejected"):
            decide(request, member("finance"))
    assert everything() == before


def test_expired_it_is_not_approved(
    user: User, asker: User, second: User, limit: int, settings: Settings
) -> None:
    settings.APPROVAL_HOURS = 0
    request = ask(user, asker, limit + 1)
    with pytest.raises(RequestDecided, match="expired undecided"):
        approve(request, second)
    assert not CreditEntry.objects.exists()
    assert not ApprovalRequest.objects.waiting().exists()


def test_a_repeated_key_creates_one_request_and_is_refused_for_another(
    user: User, asker: User, second: User, limit: int
) -> None:
    for amount in (limit, limit + 1):
        first, key = ask(user, asker, amount, key=f"key{amount}"), f"key{amount}"
        before = rows()
        assert ask(user, asker, amount, key=key) == first
        for owner, actor, other in (
            (user, asker, 6),
            (user, member("support"), amount),
            (UserFactory.create(), asker, amount),
        ):
            with pytest.raises(RequestConflict):
                ask(owner, actor, other, key=key)
        assert rows() == before


def test_a_reason_and_a_sum_are_needed(user: User, asker: User, second: User, limit: int) -> None:
    request = ask(user, asker, limit + 1)
    before = rows()
    with pytest.raises(ReasonRequired):
        ask(user, asker, 5, reason=" \n")
    with pytest.raises(ReasonRequired):
        approvals.approve(request_id=request.pk, actor=second, reason=" ")
    for amount in (0, LARGEST_ADJUSTMENT + 1, -LARGEST_ADJUSTMENT - 1):
        with pytest.raises(ValueError, match="at least one"):
            ask(user, asker, amount)
    assert rows() == before


def test_the_database_refuses_changes_to_requests_and_decisions(user: User, asker: User, limit: int) -> None:
    small, large = ask(user, asker, 5), ask(user, asker, limit + 1)
    table, before = ApprovalRequest.objects, rows()
    decided: dict[str, Any] = {"status": "rejected", "decided_at": timezone.now()}
    changes: list[tuple[str, Callable[[], object]]] = [
        ("Cannot delete", lambda: table.filter(pk=large.pk).delete()),
        ("Cannot update", lambda: table.filter(pk=small.pk).update(status="waiting")),
        ("Cannot update", lambda: table.filter(pk=large.pk).update(payload={"credits": 5})),
        ("Cannot update", lambda: table.filter(pk=large.pk).update(needs_second_person=False)),
        ("Cannot update", lambda: table.filter(pk=large.pk).update(expires_at=timezone.now())),
        ("decision_fits", lambda: table.filter(pk=large.pk).update(status="done", decided_at=timezone.now())),
        ("decision_fits", lambda: table.filter(pk=large.pk).update(**decided)),
        ("second_person", lambda: table.filter(pk=large.pk).update(**decided, decided_by=asker)),
    ]
    for message, change in changes:
        with pytest.raises(DatabaseError, match=message), transaction.atomic():
            change()
    assert rows() == before


def test_a_request_refused_on_execution_stays_pending(
    user: User, asker: User, second: User, limit: int
) -> None:
    request = ask(user, asker, limit + 1)
    # Another entry has taken the key that its entry would get.
    entries.adjust(user=user, credits=1, key=f"approval:{request.pk}", actor=asker, reason="x")
    before = rows()
    with pytest.raises(Exception, match="key was used with other content"):
        approve(request, second)
    assert rows() == before


@pytest.mark.django_db(transaction=True)
def test_one_of_many_concurrent_decisions_succeeds() -> None:
    user = UserFactory.create()
    request = ask(user, member("support"), 1_800)
    deciders = [member("finance") for _ in range(6)]
    decisions = [
        partial(decide, request, actor) for actor, decide in zip(deciders, [approve, reject] * 3, strict=True)
    ]
    results = at_once(random.sample(decisions, len(decisions)), in_transaction=True)
    assert sum(isinstance(result, RequestDecided) for result in results) == len(decisions) - 1
    request.refresh_from_db()
    assert balance_of(user).balance == (1_800 if request.status == "done" else 0)


@pytest.mark.django_db(transaction=True)
def test_concurrent_partial_requests_stay_within_the_limits_in_sum(limit: int) -> None:
    """One clerk for many people, many clerks for one person, and everybody for everybody."""
    clerks, people = [member("support") for _ in range(3)], [UserFactory.create() for _ in range(3)]
    part = limit // 3
    at_once([partial(ask, people[n % 3], clerks[0], part) for n in range(6)], in_transaction=True)
    alone = limit // part
    assert sum(entry.amount for entry in CreditEntry.objects.all()) == alone * part
    at_once(
        [partial(ask, person, clerk, part) for person in people for clerk in clerks[1:]] * 2,
        in_transaction=True,
    )
    assert sum(entry.amount for entry in CreditEntry.objects.all()) <= 2 * limit
    assert sum(entry.amount for entry in CreditEntry.objects.all()) > 2 * limit - part


@pytest.mark.django_db(transaction=True)
def test_the_same_form_sent_concurrently_creates_one_request(limit: int) -> None:
    user, asker = UserFactory.create(), member("support")
    results = at_once([partial(ask, user, asker, limit, key="page") for _ in range(6)], in_transaction=True)
    assert len({result.pk for result in results if isinstance(result, ApprovalRequest)}) == 1
    assert balance_of(user).balance == limit


@pytest.mark.parametrize(
    ("role", "waiting", "mine"),
    [("finance", 1, 1), ("support", 1, 0), ("superuser", 1, 1)],
)
def test_the_queue_shows_pending_requests_and_those_the_reader_may_decide(
    user: User, asker: User, limit: int, role: str, waiting: int, mine: int
) -> None:
    request, _done = ask(user, asker, limit + 1), ask(user, asker, 5)
    browser = browser_of(member(role))
    for state, count in (("", waiting), ("?state=mine", mine), ("?state=decided", 1), ("?state=expired", 0)):
        page: Any = browser.get(f"/admin/gateway_admin/approvalrequest/{state}")
        listed = list(page.context["cl"].result_list)
        assert len(listed) == count, state
        assert request in listed or state not in {"", "?state=mine"} or not count
    assert ("Adjust credits" in page.context["approval_notice"]) == bool(mine)
