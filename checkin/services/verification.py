"""Recomputes the draws of a day from public data, and compares them with the stored ones."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any

from checkin import queries
from checkin.draw import Draw, Item, commitment_of, draw, streak_levels, unlocked
from checkin.errors import DayNotRevealed
from checkin.models import LONGEST_STREAK, CheckIn, DailySeed, DropType
from checkin.services import checkins
from checkin.services.checkins import identity_of, tables_drawn
from credits.models import CreditEntry
from rewards.models import ExperienceEntry, Modifier

_CHUNK = 1000
_NEW, _NIGHTS = timedelta(days=2), 45

_Items = dict[tuple[int, int | None, bool], list[Item]]
_Draws = dict[CheckIn, Draw | None]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference from the recomputation; `check_in_id` is None if it is about the seed itself."""

    check_in_id: int | None
    what: str
    stored: object
    recomputed: object


@dataclass(frozen=True, kw_only=True)
class Verification:
    check_ins: int
    differences: list[Difference]


def verify_day(day: date) -> Verification:
    """
    Recompute every draw of the day and look up its effect.

    A draw depends on the profile's address, so draws of erased users can no longer be recomputed.

    Raises:
        DayNotRevealed: there is no seed for the day, or it is not public.
    """
    row = DailySeed.objects.filter(day=day, revealed_at__isnull=False).first()
    if row is None:
        raise DayNotRevealed(f"No seed of {day} is public.")
    seed = bytes.fromhex(row.revealed_seed)
    differences = list(_compare(None, "commitment", row.commitment, commitment_of(seed)))
    drawn = CheckIn.objects.filter(day=day, user__profile_address__isnull=False).select_related(
        "user", "permanent_table", "subscriber_table"
    )
    rows = drawn.order_by("id").iterator(chunk_size=_CHUNK)
    items: _Items = {}
    count = 0
    while chunk := list(islice(rows, _CHUNK)):
        count += len(chunk)
        for check_in in chunk:
            differences += _compare(check_in.pk, "seed", check_in.seed_id, row.pk)
        possible = {check_in: _items_of(check_in, items) for check_in in chunk}
        differences += _compare_streaks(day, [row for row in chunk if streak_levels(possible[row]) != [0]])
        again = {
            check_in: _redraw(check_in, seed, unlocked(those, streak=check_in.streak))
            for check_in, those in possible.items()
        }
        differences += _compare_draws(again)
        differences += _compare_effects(again)
    return Verification(check_ins=count, differences=differences)


def find_differences(now: datetime) -> Iterator[dict[str, Any]]:
    """Recompute the days whose seeds became public in the last two days, and each older day every 45 nights."""
    public = DailySeed.objects.filter(revealed_at__isnull=False).order_by("day")
    new = set(public.filter(revealed_at__gte=now - _NEW).values_list("day", flat=True))
    for day in public.values_list("day", flat=True):
        if day not in new and (now.toordinal() - day.toordinal()) % _NIGHTS:
            continue
        for difference in verify_day(day).differences:
            yield {
                "rule": "a check-in is what its seed draws",
                "have": f"{difference.what} {difference.stored}",
                "wanted": str(difference.recomputed),
                "ids": {"day": str(day), "check-in": str(difference.check_in_id or "")},
            }


def _items_of(check_in: CheckIn, by_tables: _Items) -> list[Item]:
    only = check_in.experience_only
    key = (check_in.permanent_table_id, check_in.subscriber_table_id, only)
    if key not in by_tables:
        drawn_from = queries.items_of(tables_drawn(check_in))
        by_tables[key] = [item for item in drawn_from if not only or item.drop_type == DropType.EXPERIENCE]
    return by_tables[key]


def _redraw(check_in: CheckIn, seed: bytes, items: list[Item]) -> Draw | None:
    identity = identity_of(check_in, profile_address=str(check_in.user.profile_address))
    return draw(seed=seed, identity=identity, items=items) if items else None


def _compare_streaks(day: date, drawn: list[CheckIn]) -> Iterator[Difference]:
    """Count the streaks again of check-ins of the day whose tables have rules about streaks."""
    earlier = CheckIn.objects.filter(
        user_id__in=[row.user_id for row in drawn], day__lt=day, day__gt=day - timedelta(days=LONGEST_STREAK)
    )
    days: dict[int, set[date]] = defaultdict(set)
    for user_id, other in earlier.values_list("user_id", "day").distinct().order_by():
        days[user_id].add(other)
    for row in drawn:
        yield from _compare(row.pk, "streak", row.streak, queries.streak_in(days[row.user_id], day))


def _compare_draws(again: _Draws) -> Iterator[Difference]:
    for check_in, drawn in again.items():
        if drawn is None:
            yield Difference(check_in_id=check_in.pk, what="items", stored="none", recomputed="some")
            continue
        possible = [checkins.as_json(drop) for drop in drawn.possible]
        yield from _compare(check_in.pk, "possible results", check_in.possible_results, possible)
        yield from _compare(check_in.pk, "result", check_in.result_place, drawn.chosen)


def _compare_effects(again: _Draws) -> Iterator[Difference]:
    """
    Look up the effects of the recomputed drops.

    Modifiers are deleted some time after they have ended, so a missing one is not a difference.
    """
    keys = [check_in.effect_key for check_in in again]
    credited = dict(CreditEntry.objects.filter(key__in=keys).values_list("key", "amount"))
    gained = dict(ExperienceEntry.objects.filter(key__in=keys).values_list("key", "base"))
    modifiers = {row.key: row for row in Modifier.objects.filter(key__in=keys)}
    for check_in, drawn in again.items():
        if drawn is None:
            continue
        drop, key = drawn.result, check_in.effect_key
        is_credit, is_experience = drop.drop_type == DropType.CREDITS, drop.drop_type == DropType.EXPERIENCE
        yield from _compare(check_in.pk, "credits", credited.get(key), drop.value if is_credit else None)
        yield from _compare(check_in.pk, "experience", gained.get(key), drop.value if is_experience else None)
        if key in modifiers:
            given = (modifiers[key].modifier_type, modifiers[key].value)
            yield from _compare(check_in.pk, "bonus", given, (drop.drop_type, drop.value))


def _compare(check_in_id: int | None, what: str, stored: object, recomputed: object) -> Iterator[Difference]:
    if stored != recomputed:
        yield Difference(check_in_id=check_in_id, what=what, stored=stored, recomputed=recomputed)
