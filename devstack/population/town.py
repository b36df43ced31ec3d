"""What all lives share: the time, the rule books, the networks, the seeds of days, relayers, and numbers for rows."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.db import connection

from checkin.draw import Item
from checkin.models import CheckIn, DailySeed, DropTable
from checkin.queries import day_of, items_of
from checkin.services import seeds
from credits.models import CreditHold
from earnings.models import AdNetwork
from earnings.networks import ADAPTERS
from relay.models import Relayer
from rewards.models import Badge, BadgeTrack
from users.models import User

DAYS = 45
_CHUNK = 500


@dataclass
class Town:
    """Read once; `account_nonce` counts what the retired relayer has sent."""

    rng: random.Random
    now: datetime
    staff: User
    relayer: Relayer
    ladder: list[Badge] = field(init=False)
    networks: dict[str, AdNetwork] = field(init=False)
    tables: dict[int, tuple[DropTable, list[Item]]] = field(init=False)
    seeds: dict[date, tuple[DailySeed, bytes]] = field(init=False)
    holds: Iterator[int] = field(init=False)
    check_ins: Iterator[int] = field(init=False)
    account_nonce: int = 0

    def __post_init__(self) -> None:
        self.ladder = list(Badge.objects.filter(track=BadgeTrack.PERMANENT).order_by("exp_lower_bound"))
        self.networks = {
            row.slug: row for row in AdNetwork.objects.filter(slug__in=ADAPTERS, is_enabled=True)
        }
        published = DropTable.objects.filter(published_at__isnull=False).order_by("published_at", "id")
        self.tables = {row.badge_id: (row, items_of([row])) for row in published if row.badge_id}
        days = [day_of(self.now) - timedelta(days=ago) for ago in range(DAYS + 1)]
        self.seeds = {day: (row, seeds.secret_seed_of(row)) for day in days if (row := _seed_of(day))}
        self.holds, self.check_ins = _numbers(CreditHold), _numbers(CheckIn)

    def hexadecimal(self, size: int) -> str:
        """Return so many bytes in hex."""
        return self.rng.randbytes(size).hex()

    def next_account_nonce(self) -> int:
        """Return the relayer's next account nonce."""
        self.account_nonce += 1
        return self.account_nonce - 1


def _seed_of(day: date) -> DailySeed | None:
    """Return the day's seed unless it is public already: nobody can have checked in under it any more."""
    row = seeds.seed_of(day)
    return row if row.revealed_at is None else None


def _numbers(model: Any) -> Iterator[int]:
    """Yield primary keys that nothing else will get."""
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
                [model._meta.db_table, _CHUNK],
            )
            numbers = [number for (number,) in cursor.fetchall()]
        yield from numbers
