"""Levels as staff change them: neighbours follow, faults are named, a preview counts who gets which badge."""

import random
import secrets
from decimal import Decimal
from functools import partial

import pytest
from django.core.exceptions import ValidationError

from rewards.errors import InvalidLevels
from rewards.models import Badge, BadgeTrack
from rewards.queries import badges_at
from rewards.services import levels
from tests.credits.rows import query
from tests.factories import UserFactory
from tests.rewards.rows import set_experience
from tests.threads import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def track() -> str:
    """Return one of both tracks, whose ladders have the same rules."""
    return str(random.choice(list(BadgeTrack)))


def levels_of(track: str) -> list[tuple[str, int, int | None]]:
    rows = Badge.objects.filter(track=track).order_by("exp_lower_bound")
    return list(rows.values_list("name", "exp_lower_bound", "exp_upper_bound"))


def commit() -> None:
    """Run what PostgreSQL would run at commit."""
    query("SET CONSTRAINTS ALL IMMEDIATE")
    query("SET CONSTRAINTS ALL DEFERRED")


def new(track: str, begins: int, **terms: object) -> Badge:
    return Badge(track=track, name=secrets.token_hex(4), exp_lower_bound=begins, **terms)


def experienced(track: str, *amounts: int) -> None:
    column = f"{track.lower()}_experience"
    for amount in amounts:
        set_experience(UserFactory.create(), **{column: amount})


def test_a_new_badge_takes_its_range_from_the_one_below(track: str) -> None:
    before = levels_of(track)
    (name, begins, ends), *_ = before[1:]
    assert ends is not None
    middle = random.randint(begins + 1, ends - 1)
    saved = levels.save_badge(badge=new(track, middle, credits_back_percent=Decimal("0.07")))
    commit()
    assert levels_of(track) == [
        before[0],
        (name, begins, middle),
        (saved.name, middle, ends),
        *before[2:],
    ]
    assert Badge.objects.get(pk=saved.pk).credits_back_percent == Decimal("0.07")


def test_a_new_top_ends_the_old_one(track: str) -> None:
    *below, (name, begins, _) = levels_of(track)
    saved = levels.save_badge(badge=new(track, begins + 10**6))
    commit()
    assert levels_of(track) == [
        *below,
        (name, begins, begins + 10**6),
        (saved.name, begins + 10**6, None),
    ]


def test_a_badge_that_begins_elsewhere_moves_its_neighbour(track: str) -> None:
    before = levels_of(track)
    badge = Badge.objects.get(track=track, name=before[2][0])
    badge.exp_lower_bound += 7
    levels.save_badge(badge=badge)
    commit()
    moved = before[2][1] + 7
    assert levels_of(track)[1:3] == [(*before[1][:2], moved), (before[2][0], moved, before[2][2])]
    assert levels_of(track)[3:] == before[3:]


def test_a_badge_may_move_past_its_neighbours(track: str) -> None:
    before = levels_of(track)
    badge = Badge.objects.get(track=track, name=before[1][0])
    badge.exp_lower_bound = before[-1][1] + 5
    levels.save_badge(badge=badge)
    commit()
    assert [name for name, *_ in levels_of(track)] == [
        name for name, *_ in [before[0], *before[2:], before[1]]
    ]
    assert levels_of(track)[-1] == (badge.name, before[-1][1] + 5, None)


def test_a_removed_badges_range_goes_to_the_next_lower_badge(track: str) -> None:
    before = levels_of(track)
    for place in (2, -1):
        levels.remove_badge(badge=Badge.objects.get(track=track, name=before[place][0]))
        commit()
    assert levels_of(track) == [
        before[0],
        (before[1][0], before[1][1], before[2][2]),
        *before[3:-2],
        (before[-2][0], before[-2][1], None),
    ]


def test_levels_start_with_a_first_badge(track: str) -> None:
    Badge.objects.filter(track=track).delete()
    preview = levels.preview_saving(badge=new(track, 0))
    assert [movement.before for movement in preview.movements] == []
    only = levels.save_badge(badge=new(track, 0))
    commit()
    assert levels_of(track) == [(only.name, 0, None)]
    with pytest.raises(InvalidLevels, match="at least one badge"):
        levels.remove_badge(badge=only)


def test_each_fault_is_named_and_nothing_changes(track: str) -> None:
    before = list(Badge.objects.values())
    bottom, second = Badge.objects.filter(track=track)[:2]
    with pytest.raises(InvalidLevels, match=r"and .* overlap at \d+"):
        levels.save_badge(badge=new(track, second.exp_lower_bound))
    with pytest.raises(InvalidLevels, match="begins at -3 instead of 0"):
        levels.save_badge(badge=new(track, -3))
    with pytest.raises(InvalidLevels, match="JSON"):
        levels.save_badge(badge=new(track, 2**53 - 1))
    with pytest.raises(
        InvalidLevels, match=f"{second.name}, begins at {second.exp_lower_bound} instead of 0"
    ):
        levels.remove_badge(badge=bottom)
    bottom.exp_lower_bound = 1
    with pytest.raises(InvalidLevels, match="begins at 1 instead of 0"):
        levels.save_badge(badge=bottom)
    assert list(Badge.objects.values()) == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("credits_back_percent", Decimal("1.01")),
        ("exp_growth_rate", Decimal(0)),
        ("acceptable_credit_debt", -1),
        ("bonus_creds_surveys", Decimal("0.00001")),
        ("name", ""),
        ("exp_lower_bound", None),
    ],
)
def test_terms_out_of_range_are_refused(track: str, field: str, value: object) -> None:
    before = list(Badge.objects.values())
    badge = Badge.objects.filter(track=track)[1]
    setattr(badge, field, value)
    with pytest.raises(ValidationError):
        levels.save_badge(badge=badge)
    assert list(Badge.objects.values()) == before


def test_a_badge_stays_on_its_track() -> None:
    badge = Badge.objects.filter(track=BadgeTrack.PERMANENT)[1]
    badge.track = BadgeTrack.SUBSCRIBER
    with pytest.raises(ValueError, match="track"):
        levels.save_badge(badge=badge)


def test_the_preview_of_a_move_counts_users_per_level_and_changes_nothing(track: str) -> None:
    bottom, second, third = Badge.objects.filter(track=track)[:3]
    begins, ends = second.exp_lower_bound, third.exp_lower_bound
    experienced(track, 0, begins - 1, begins, begins + 1, begins + 2, ends - 1, ends, 10**12)
    before = list(Badge.objects.values())
    badge = Badge.objects.get(pk=second.pk)
    badge.exp_lower_bound = begins + 2
    preview = levels.preview_saving(badge=badge)
    counts = {count.badge.name: (count.before, count.after) for count in preview.counts}
    assert counts.pop(bottom.name) == (2, 4)
    assert counts.pop(second.name) == (4, 2)
    assert sum(was for was, _ in counts.values()) == sum(will for _, will in counts.values()) == 2
    ((accounts, was, will, changes),) = preview.movements
    assert (accounts, was, will) == (2, second, bottom)
    assert changes["credits_back_percent"] == (
        f"{second.credits_back_percent}",
        f"{bottom.credits_back_percent}",
    )
    assert list(Badge.objects.values()) == before


def test_the_preview_of_better_terms_counts_the_affected_users(track: str) -> None:
    bottom = Badge.objects.filter(track=track)[0]
    experienced(track, 0, 1, 2)
    badge = Badge.objects.get(pk=bottom.pk)
    badge.acceptable_credit_debt = bottom.acceptable_credit_debt + 11
    ((accounts, _, will, changes),) = levels.preview_saving(badge=badge).movements
    assert (accounts, will) == (3, bottom)
    assert changes == {
        "acceptable_credit_debt": (f"{bottom.acceptable_credit_debt}", f"{badge.acceptable_credit_debt}")
    }


def test_the_preview_of_a_removal_and_of_a_new_badge(track: str) -> None:
    top = Badge.objects.filter(track=track).latest("exp_lower_bound")
    experienced(track, top.exp_lower_bound, top.exp_lower_bound + 100)
    gone = levels.preview_removing(badge=top)
    assert [(count.badge.name, count.before, count.after) for count in gone.counts][-1] == (top.name, 2, 0)
    assert [movement.before for movement in gone.movements] == [top]
    above = new(track, top.exp_lower_bound + 100)
    came = levels.preview_saving(badge=above)
    assert [(movement.users, movement.after) for movement in came.movements] == [(1, above)]
    assert [(count.before, count.after) for count in came.counts[-2:]] == [(2, 1), (0, 1)]


def test_the_preview_equals_the_effect_of_the_change(track: str) -> None:
    second, third = Badge.objects.filter(track=track)[1:3]
    amounts = [random.randint(0, 2 * third.exp_lower_bound) for _ in range(12)]
    experienced(track, *amounts)
    second.exp_lower_bound = random.randint(1, third.exp_lower_bound - 1)
    preview = levels.preview_saving(badge=second)
    levels.save_badge(badge=second)
    current = badges_at([(BadgeTrack(track), amount) for amount in amounts])
    for count in preview.counts:
        assert count.after == sum(badge.pk == count.badge.pk for badge in current)


@pytest.mark.django_db(transaction=True)
def test_concurrent_changes_to_levels_are_all_kept(track: str) -> None:
    before = levels_of(track)
    top = before[-1][1]
    begins = random.sample(range(top + 1, top + 10**6), 8)
    results = at_once(
        [partial(levels.save_badge, badge=new(track, place)) for place in begins], in_transaction=True
    )
    assert all(isinstance(result, Badge) for result in results)
    assert [place for _, place, _ in levels_of(track)] == [place for _, place, _ in before] + sorted(begins)
    commit()
