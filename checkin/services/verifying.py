"""Draw a day again from what is public, and compare."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from checkin import queries
from checkin.draw import Draw, Item, commitment_of, draw
from checkin.errors import DayNotRevealed
from checkin.models import CheckIn, DailySeed, DropType
from checkin.services import effects
from checkin.services.checkins import tables_drawn, ticket_of
from credits.models import CreditEntry, ExperienceEntry, Modifier

_CHUNK = 1000


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Something that is not as the seed says; `check_in_id` is None where it concerns the seed itself."""

    check_in_id: int | None
    what: str
    stored: object
    recomputed: object


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What came of drawing a day again."""

    check_ins: int
    differences: list[Difference]


def verify_day(day: date) -> Verification:
    """
    Recompute every draw of the day and look its effect up.

    Raises:
        DayNotRevealed: there is no seed for the day, or it is not public.
    """
    row = DailySeed.objects.filter(day=day, revealed_at__isnull=False).first()
    if row is None:
        raise DayNotRevealed(f"No seed of {day} is public.")
    seed = bytes.fromhex(row.revealed_seed)
    differences = list(_compare(None, "commitment", row.commitment, commitment_of(seed)))
    drawn = CheckIn.objects.filter(day=day).select_related("user", "permanent_table", "subscriber_table")
    known: dict[tuple[object, ...], list[Item]] = {}
    count = 0
    chunk: list[CheckIn] = []
    for check_in in drawn.order_by("id").iterator(chunk_size=_CHUNK):
        differences += _compare(check_in.pk, "seed", check_in.seed_id, row.pk)
        differences += _redraw(check_in, seed, known)
        count += 1
        chunk.append(check_in)
        if len(chunk) == _CHUNK:
            differences += _effects(chunk)
            chunk = []
    return Verification(check_ins=count, differences=differences + list(_effects(chunk)))


def _redraw(
    check_in: CheckIn, seed: bytes, known: dict[tuple[object, ...], list[Item]]
) -> Iterator[Difference]:
    key = (check_in.permanent_table_id, check_in.subscriber_table_id, check_in.experience_only)
    if key not in known:
        found = queries.items_of(tables_drawn(check_in))
        only = check_in.experience_only
        known[key] = [item for item in found if not only or item.drop_type == DropType.EXPERIENCE]
    ticket = ticket_of(check_in, profile_address=str(check_in.user.profile_address))
    again = draw(seed=seed, ticket=ticket, items=known[key])
    yield from _compare_draws(check_in, again)


def _compare_draws(check_in: CheckIn, again: Draw) -> Iterator[Difference]:
    possible = [effects.as_json(drop) for drop in again.possible]
    yield from _compare(check_in.pk, "possible results", check_in.possible_results, possible)
    yield from _compare(check_in.pk, "result", check_in.result_place, again.chosen)


def _effects(chunk: list[CheckIn]) -> Iterator[Difference]:
    """Look up what the drops did. Modifiers are deleted some time after they ended, so a missing one proves nothing."""
    keys = [check_in.effect_key for check_in in chunk]
    credited = dict(CreditEntry.objects.filter(key__in=keys).values_list("key", "amount"))
    learnt = dict(ExperienceEntry.objects.filter(key__in=keys).values_list("key", "base"))
    raised = dict(Modifier.objects.filter(key__in=keys).values_list("key", "value"))
    for check_in in chunk:
        drop, key = effects.from_json(check_in.result), check_in.effect_key
        is_credit, is_experience = drop.drop_type == DropType.CREDITS, drop.drop_type == DropType.EXPERIENCE
        yield from _compare(check_in.pk, "credits", credited.get(key), drop.value if is_credit else None)
        yield from _compare(check_in.pk, "experience", learnt.get(key), drop.value if is_experience else None)
        if key in raised:
            bonus = None if is_credit or is_experience else drop.value
            yield from _compare(check_in.pk, "bonus", raised[key], bonus)


def _compare(check_in_id: int | None, what: str, stored: object, recomputed: object) -> Iterator[Difference]:
    if stored != recomputed:
        yield Difference(check_in_id=check_in_id, what=what, stored=stored, recomputed=recomputed)
