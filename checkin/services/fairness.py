"""What lets users check that nobody chose their drops."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Prefetch

from checkin.models import CheckIn, DailySeed, DropItem, DropTable
from checkin.queries import day_of
from checkin.services import seeds
from gateway.common.owner import ProfileOwner

# Days whose seeds are shown, counted back from the newest one that is public.
DAYS_TOLD = 14


@dataclass(frozen=True, kw_only=True)
class FairnessRecord:
    """Commitments, public seeds (newest first), and the user's draws under them with the tables drawn from."""

    today: DailySeed
    tomorrow: DailySeed
    revealed: list[DailySeed]
    draws: list[CheckIn]
    tables: list[DropTable]


def record_of(*, user: ProfileOwner, now: datetime) -> FairnessRecord:
    """Return the record; a commitment that beat has not made yet is made."""
    today = day_of(now)
    with transaction.atomic(durable=True):
        committed = [seeds.seed_of(today + timedelta(days=ahead)) for ahead in range(2)]
    oldest = day_of(now - seeds.REVEALED_AFTER) - timedelta(days=DAYS_TOLD - 1)
    revealed = DailySeed.objects.filter(day__gte=oldest, revealed_at__isnull=False).order_by("-day")
    draws = list(
        CheckIn.objects.filter(user_id=user.pk, seed__in=revealed.order_by())
        .select_related("permanent_table", "subscriber_table")
        .order_by("-day", "-attempt")
    )
    pairs = [(row.permanent_table_id, row.subscriber_table_id) for row in draws]
    drawn_from = {number for pair in pairs for number in pair if number is not None}
    items = Prefetch("items", DropItem.objects.order_by("id"))
    tables = DropTable.objects.filter(pk__in=drawn_from).order_by("id").prefetch_related(items)
    return FairnessRecord(
        today=committed[0],
        tomorrow=committed[1],
        revealed=list(revealed),
        draws=draws,
        tables=list(tables),
    )
