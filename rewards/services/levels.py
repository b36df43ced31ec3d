"""
Shape the ladders of badges: one badge is saved or removed, and its neighbours' ranges follow.

Staff say where a badge begins; where it ends is where the next one begins. The whole
ladder is locked and judged before anything is written; the database judges it again
when the transaction commits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from django.db import connection, transaction

from rewards.errors import InvalidLevels
from rewards.models import Badge
from rewards.rules import level_faults

# What a badge grants, in the order of the model.
TERMS = (
    "exp_growth_rate",
    "bonus_creds_push_ads",
    "bonus_creds_video_ads",
    "bonus_creds_offerwall",
    "bonus_creds_surveys",
    "bonus_daily_check_in_attempts",
    "credits_back_percent",
    "acceptable_credit_debt",
)
# Ranges are judged by the whole ladder, not against neighbours as they still are.
_RANGE = {"exp_lower_bound", "exp_upper_bound"}


# One pass over everybody's progress; `width_bucket` counts the lower bounds that an experience has reached.
_COUNT = """
SELECT width_bucket(experience, %(before)s::bigint[]), width_bucket(experience, %(after)s::bigint[]), count(*)
FROM (
    SELECT CASE %(track)s WHEN 'PERMANENT' THEN permanent_experience ELSE subscriber_experience END AS experience
    FROM rewards_progress
) AS progress
GROUP BY 1, 2 ORDER BY 1, 2
"""


class _Worn(NamedTuple):
    before: Badge | None
    after: Badge
    accounts: int


class Movement(NamedTuple):
    """How many accounts wear `before` now and would wear `after`, and the terms that differ: from, to."""

    accounts: int
    before: Badge | None
    after: Badge
    changes: dict[str, tuple[str, str]]


class Count(NamedTuple):
    """How many accounts have the experience for a badge, now and then."""

    badge: Badge
    before: int
    after: int


@dataclass(frozen=True, kw_only=True)
class Preview:
    """
    What a change of a ladder would do to the existing accounts.

    `movements` leaves out accounts for which nothing changes. On the subscriber's
    track everybody with an account is counted, whether an allowance runs or not.
    """

    ladder: list[Badge]
    counts: list[Count]
    movements: list[Movement]


def save_badge(*, badge: Badge) -> Badge:
    """
    Add the badge to the ladder of its track, or change it there; its upper bound is worked out.

    A lower bound beyond a neighbour's moves the badge past it.

    Raises:
        LadderBroken: the ladder would have an overlap, or not begin at 0; the detail names each fault.
        ValidationError: a term of the badge is out of range.
        ValueError: the badge belongs to the other track.
    """
    with transaction.atomic():
        ladder = _locked(badge.track)
        bounds = _upper_bounds(ladder)
        shaped = _with(ladder, badge)
        badge.save()
        _move({**bounds, badge.pk: badge.exp_upper_bound}, shaped)
    return badge


def remove_badge(*, badge: Badge) -> None:
    """
    Take the badge out of its ladder; who wears it wears the one below from then on.

    Raises:
        LadderBroken: it is the lowest, or the only one.
    """
    with transaction.atomic():
        ladder = _locked(badge.track)
        bounds = _upper_bounds(ladder)
        rest = _without(ladder, badge)
        Badge.objects.filter(pk=badge.pk).delete()
        _move(bounds, rest)


def preview_saving(*, badge: Badge) -> Preview:
    """Return what `save_badge` would do, with what it raises; nothing changes."""
    ladder = _ladder(badge.track)
    return _preview(badge.track, ladder, _with(ladder, badge))


def preview_removing(*, badge: Badge) -> Preview:
    """Return what `remove_badge` would do, with what it raises; nothing changes."""
    ladder = _ladder(badge.track)
    return _preview(badge.track, ladder, _without(ladder, badge))


def _ladder(track: str) -> list[Badge]:
    return list(Badge.objects.filter(track=track).order_by("exp_lower_bound"))


def _locked(track: str) -> list[Badge]:
    """Lock the ladder, then read it anew: whoever held the lock before may have added a badge."""
    rows = Badge.objects.select_for_update().filter(track=track).order_by("pk")
    list(rows.values_list("pk", flat=True))
    return _ladder(track)


def _with(ladder: Sequence[Badge], badge: Badge) -> list[Badge]:
    known = {step.pk for step in ladder}
    if badge.pk is not None and badge.pk not in known:
        raise ValueError("a badge stays on its track")
    badge.clean_fields(exclude=_RANGE - {"exp_lower_bound"})
    badge.validate_constraints(exclude=_RANGE)
    return _shaped([*(step for step in ladder if step.pk != badge.pk), badge])


def _without(ladder: Sequence[Badge], badge: Badge) -> list[Badge]:
    return _shaped([step for step in ladder if step.pk != badge.pk])


def _shaped(steps: Sequence[Badge]) -> list[Badge]:
    """Return the steps in order, each ending where the next begins; a step's lower bound is never changed."""
    ladder = sorted(steps, key=lambda step: step.exp_lower_bound)
    for step, following in zip_longest(ladder, ladder[1:]):
        step.exp_upper_bound = following.exp_lower_bound if following else None
    found = list(level_faults(ladder))
    if found:
        raise InvalidLevels(" ".join(found))
    return ladder


def _upper_bounds(ladder: Sequence[Badge]) -> dict[int, int | None]:
    return {step.pk: step.exp_upper_bound for step in ladder}


def _move(bounds: dict[int, int | None], shaped: Sequence[Badge]) -> None:
    """Write the upper bounds that differ from `bounds`."""
    for step in shaped:
        if bounds[step.pk] != step.exp_upper_bound:
            Badge.objects.filter(pk=step.pk).update(exp_upper_bound=step.exp_upper_bound)


def _preview(track: str, before: Sequence[Badge], after: list[Badge]) -> Preview:
    worn = _count(track, before, after)
    gone = [step for step in before if not any(_is_same(step, kept) for kept in after)]
    return Preview(
        ladder=after,
        counts=[_counted(step, worn) for step in [*after, *gone]],
        movements=[movement for movement in map(_movement, worn) if movement],
    )


def _counted(badge: Badge, worn: Sequence[_Worn]) -> Count:
    before = sum(part.accounts for part in worn if _is_same(part.before, badge))
    return Count(badge, before, sum(part.accounts for part in worn if _is_same(part.after, badge)))


def _count(track: str, before: Sequence[Badge], after: Sequence[Badge]) -> list[_Worn]:
    """Count the accounts by the badge that they have the experience for now and then, in one statement."""
    old: list[Badge | None] = [*before] or [None]
    params: dict[str, Any] = {
        "track": track,
        "before": [step.exp_lower_bound if step else 0 for step in old],
        "after": [step.exp_lower_bound for step in after],
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, params)
        return [_Worn(old[now - 1], after[then - 1], accounts) for now, then, accounts in cursor.fetchall()]


def _movement(worn: _Worn) -> Movement | None:
    """Return what changes for these accounts, or None where nothing does."""
    changes = _changes(worn.before, worn.after) if worn.before else {}
    if worn.before and _is_same(worn.before, worn.after) and not changes:
        return None
    return Movement(worn.accounts, worn.before, worn.after, changes)


def _changes(before: Badge, after: Badge) -> dict[str, tuple[str, str]]:
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in TERMS}
    return {name: (str(old), str(new)) for name, (old, new) in pairs.items() if old != new}


def _is_same(one: Badge | None, other: Badge) -> bool:
    """Return whether it is the same badge, which may be one that is not stored yet."""
    return one is other or (one is not None and one.pk is not None and one.pk == other.pk)
