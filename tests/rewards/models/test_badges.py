"""Levels: seeded, without gap, overlap or top."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from rewards.models import Badge, BadgeTrack
from rewards.queries import badges_at
from rewards.rules import badge_at

pytestmark = pytest.mark.django_db


def commit(change: Callable[[], object]) -> None:
    """Make the change and run what PostgreSQL would run at commit."""
    with transaction.atomic():
        change()
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


@pytest.mark.parametrize(("track", "steps"), [(BadgeTrack.PERMANENT, 10), (BadgeTrack.SUBSCRIBER, 5)])
def test_a_new_database_has_badges_that_each_cost_and_give_more(track: BadgeTrack, steps: int) -> None:
    badges = list(Badge.objects.filter(track=track))
    assert len(badges) == steps
    assert badges[0].exp_lower_bound == 0
    assert [badge.exp_upper_bound for badge in badges] == [
        *(badge.exp_lower_bound for badge in badges[1:]),
        None,
    ]
    for field in ("exp_growth_rate", "bonus_creds_surveys", "credits_back_percent", "acceptable_credit_debt"):
        values = [getattr(badge, field) for badge in badges]
        assert values == sorted(values)


@pytest.mark.parametrize("track", BadgeTrack)
def test_overlaps_and_gaps_are_refused(track: BadgeTrack) -> None:
    first, second, third = Badge.objects.filter(track=track)[:3]
    assert second.exp_upper_bound is not None
    before = list(Badge.objects.values())
    changes: list[tuple[str, Callable[[], object]]] = [
        ("no_overlap", lambda: Badge.objects.filter(pk=second.pk).update(exp_upper_bound=10**12)),
        ("levels", lambda: Badge.objects.filter(pk=second.pk).update(exp_upper_bound=second.exp_lower_bound + 1)),
        ("levels", lambda: Badge.objects.filter(pk=second.pk).delete()),
        ("levels", lambda: Badge.objects.filter(pk=first.pk).update(exp_lower_bound=1)),
        ("levels", lambda: Badge.objects.filter(track=track, exp_upper_bound=None).update(exp_upper_bound=10**12)),
        ("no_overlap", lambda: Badge.objects.create(track=track, name="Twin", exp_lower_bound=10**10)),
    ]  # fmt: skip
    for constraint, change in changes:
        with pytest.raises(IntegrityError, match=constraint):
            commit(change)
    assert list(Badge.objects.values()) == before
    assert third.exp_lower_bound == second.exp_upper_bound


def test_neighbours_may_move_together() -> None:
    first, second = Badge.objects.filter(track=BadgeTrack.PERMANENT)[:2]
    moved = second.exp_lower_bound + 7

    def move() -> None:
        Badge.objects.filter(pk=first.pk).update(exp_upper_bound=moved)
        Badge.objects.filter(pk=second.pk).update(exp_lower_bound=moved)

    commit(move)
    assert Badge.objects.get(pk=second.pk).exp_lower_bound == moved


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bonus_creds_push_ads", Decimal("-0.01")),
        ("bonus_creds_surveys", Decimal("10.01")),
        ("credits_back_percent", Decimal("1.01")),
        ("exp_growth_rate", Decimal(0)),
        ("acceptable_credit_debt", -1),
        ("track", "OTHER"),
        ("exp_upper_bound", 0),
        ("exp_upper_bound", 2**53),
    ],
)
def test_terms_out_of_range_are_refused(field: str, value: object) -> None:
    badge = Badge.objects.filter(track=BadgeTrack.PERMANENT).earliest("exp_lower_bound")
    with pytest.raises(DatabaseError), transaction.atomic():
        Badge.objects.filter(pk=badge.pk).update(**{field: value})


@pytest.mark.parametrize("track", BadgeTrack)
def test_the_badge_found_in_memory_equals_the_one_of_the_database(track: BadgeTrack) -> None:
    levels = list(Badge.objects.filter(track=track).order_by("?"))
    bounds = [level.exp_lower_bound for level in levels]
    for experience in {bound + step for bound in bounds for step in (-1, 0, 1)} | {10**15}:
        (stored,) = badges_at([(track, experience)])
        found = badge_at(levels, experience)
        assert (found and found.pk) == stored.pk
