"""
Change the levels of a track: save or remove a badge, and adjust its neighbours' ranges.

Staff set a badge's lower bound; its upper bound is the next badge's lower bound. All badges of the track are
locked and validated before anything is written; the database validates them again at commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from django.db import connection, transaction

from gateway.common.statements import Statements
from rewards.errors import InvalidLevels
from rewards.models import TERMS, Badge
from rewards.rules import level_faults

# Ranges are validated with all changed badges of the track, not against the stored neighbours.
_RANGE = {"exp_lower_bound", "exp_upper_bound"}


class _Sql(Statements, file=__file__):
    count: str


class _Transition(NamedTuple):
    before: Badge | None
    after: Badge
    users: int


class Movement(NamedTuple):
    """The number of users who would get `after` instead of `before`, and the terms that change: old and new value."""

    users: int
    before: Badge | None
    after: Badge
    changes: dict[str, tuple[str, str]]


class Count(NamedTuple):
    """The number of users with the experience for a badge, before and after."""

    badge: Badge
    before: int
    after: int


@dataclass(frozen=True, kw_only=True)
class Preview:
    """
    The effect of a change of levels on existing users.

    `movements` omits unaffected users. On the subscriber track all users count, with or
    without an allowance.
    """

    counts: list[Count]
    movements: list[Movement]


def save_badge(*, badge: Badge) -> Badge:
    """
    Add the badge to its track, or change it there; its upper bound is computed.

    If the lower bound is beyond that of a neighbour, the badge moves past that neighbour.

    Raises:
        InvalidLevels: the levels would overlap or not begin at 0; the detail lists the faults.
        ValidationError: a term of the badge is out of range.
        ValueError: the badge belongs to the other track.
    """
    with transaction.atomic():
        levels = _locked(badge.track)
        bounds = _upper_bounds(levels)
        changed = _with(levels, badge)
        badge.save()
        _write_upper_bounds({**bounds, badge.pk: badge.exp_upper_bound}, changed)
    return badge


def remove_badge(*, badge: Badge) -> None:
    """
    Remove the badge from its track; users who have it get the one below.

    Raises:
        InvalidLevels: the badge is the lowest or the only one.
    """
    with transaction.atomic():
        levels = _locked(badge.track)
        bounds = _upper_bounds(levels)
        rest = _without(levels, badge)
        Badge.objects.filter(pk=badge.pk).delete()
        _write_upper_bounds(bounds, rest)


def preview_saving(*, badge: Badge) -> Preview:
    """Return the effect of `save_badge` without saving; raises as it does."""
    levels = _levels_of(badge.track)
    return _preview(badge.track, levels, _with(levels, badge))


def preview_removing(*, badge: Badge) -> Preview:
    """Return the effect of `remove_badge` without removing; raises as it does."""
    levels = _levels_of(badge.track)
    return _preview(badge.track, levels, _without(levels, badge))


def _levels_of(track: str) -> list[Badge]:
    return list(Badge.objects.filter(track=track).order_by("exp_lower_bound"))


def _locked(track: str) -> list[Badge]:
    """Lock the badges of the track, then read them again: the previous lock holder may have added one."""
    rows = Badge.objects.select_for_update().filter(track=track).order_by("pk")
    list(rows.values_list("pk", flat=True))
    return _levels_of(track)


def _with(levels: Sequence[Badge], badge: Badge) -> list[Badge]:
    if badge.pk is not None and badge.pk not in {level.pk for level in levels}:
        raise ValueError("a badge cannot change its track")
    badge.clean_fields(exclude=_RANGE - {"exp_lower_bound"})
    badge.validate_constraints(exclude=_RANGE)
    return _with_upper_bounds([*(level for level in levels if level.pk != badge.pk), badge])


def _without(levels: Sequence[Badge], badge: Badge) -> list[Badge]:
    return _with_upper_bounds([level for level in levels if level.pk != badge.pk])


def _with_upper_bounds(badges: Sequence[Badge]) -> list[Badge]:
    levels = sorted(badges, key=lambda badge: badge.exp_lower_bound)
    for level, following in zip_longest(levels, levels[1:]):
        level.exp_upper_bound = following.exp_lower_bound if following else None
    faults = list(level_faults(levels))
    if faults:
        raise InvalidLevels(" ".join(faults))
    return levels


def _upper_bounds(levels: Sequence[Badge]) -> dict[int, int | None]:
    return {level.pk: level.exp_upper_bound for level in levels}


def _write_upper_bounds(before: dict[int, int | None], levels: Sequence[Badge]) -> None:
    for level in levels:
        if before[level.pk] != level.exp_upper_bound:
            Badge.objects.filter(pk=level.pk).update(exp_upper_bound=level.exp_upper_bound)


def _preview(track: str, before: Sequence[Badge], after: list[Badge]) -> Preview:
    transitions = _count(track, before, after)
    removed = [level for level in before if not any(_is_same(level, kept) for kept in after)]
    return Preview(
        counts=[_count_of(level, transitions) for level in [*after, *removed]],
        movements=[movement for movement in map(_movement, transitions) if movement],
    )


def _count_of(badge: Badge, transitions: Sequence[_Transition]) -> Count:
    return Count(
        badge,
        before=sum(row.users for row in transitions if _is_same(row.before, badge)),
        after=sum(row.users for row in transitions if _is_same(row.after, badge)),
    )


def _count(track: str, before: Sequence[Badge], after: Sequence[Badge]) -> list[_Transition]:
    old: list[Badge | None] = [*before] or [None]
    params: dict[str, Any] = {
        "track": track,
        "before": [level.exp_lower_bound if level else 0 for level in old],
        "after": [level.exp_lower_bound for level in after],
    }
    with connection.cursor() as cursor:
        cursor.execute(_Sql.count, params)
        return [_Transition(old[now - 1], after[then - 1], users) for now, then, users in cursor.fetchall()]


def _movement(transition: _Transition) -> Movement | None:
    before, after, users = transition
    changes = _changes(before, after) if before else {}
    if before and _is_same(before, after) and not changes:
        return None
    return Movement(users, before, after, changes)


def _changes(before: Badge, after: Badge) -> dict[str, tuple[str, str]]:
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in TERMS}
    return {name: (str(old), str(new)) for name, (old, new) in pairs.items() if old != new}


def _is_same(one: Badge | None, other: Badge) -> bool:
    """Return whether both are the same stored row, or, if unsaved, the same object."""
    return one is other or (one is not None and one.pk is not None and one.pk == other.pk)
