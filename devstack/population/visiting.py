"""Check-ins of generated people: drawn from the seeds of their days, so that anybody can draw them again."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from checkin.draw import draw
from checkin.models import CheckIn, DropType
from checkin.queries import day_of
from checkin.services.checkins import as_json, identity_of
from credits.models import EntrySource
from devstack.population.life import Life
from rewards.models import Modifier


def check_in(life: Life, at: datetime) -> None:
    """Use an attempt of the day, if one is left."""
    day = day_of(at)
    attempt = life.attempts_by_day.get(day, 0) + 1
    if day not in life.town.seeds or attempt > life.benefits(at).check_in_attempts:
        return
    life.attempts_by_day[day] = attempt
    row = _drawn(life, at, attempt)
    life.rows.append(row)
    _apply(life, row, at)


def _drawn(life: Life, at: datetime, attempt: int) -> CheckIn:
    table, items = life.town.tables[life.badge.pk]
    seed_row, seed = life.town.seeds[day_of(at)]
    row = CheckIn(
        id=next(life.town.check_ins),
        user=life.user,
        day=day_of(at),
        attempt=attempt,
        seed=seed_row,
        permanent_table=table,
        experience_only=not life.is_proven,
        idempotency_key=life.town.hexadecimal(16),
        created_at=at,
    )
    possible = [item for item in items if life.is_proven or item.drop_type == DropType.EXPERIENCE]
    identity = identity_of(row, profile_address=str(life.user.profile_address))
    found = draw(seed=seed, identity=identity, items=possible)
    row.possible_results = [as_json(drop) for drop in found.possible]
    row.result_place = found.chosen
    return row


def _apply(life: Life, row: CheckIn, at: datetime) -> None:
    drop: dict[str, Any] = row.result
    if drop["type"] == DropType.EXPERIENCE:
        life.gain(int(drop["value"]), row.effect_key, EntrySource.CHECK_IN, at)
    elif drop["type"] == DropType.CREDITS:
        life.post(EntrySource.CHECK_IN, int(drop["value"]), row.effect_key, at)
    else:
        life.modifiers.append(
            Modifier(
                user=life.user,
                modifier_type=drop["type"],
                value=Decimal(drop["value"]),
                key=row.effect_key,
                reason="check-in",
                created_at=at,
                expires_at=at + timedelta(minutes=drop["minutes"]),
            )
        )
