"""
Daily seeds: committed in advance, secret during their day, revealed 48 hours after it began.

A seed is an HMAC of its day and salt under a secret of the processes. Computing it needs both the database and the
secret, and the commitment proves that the right secret was used.
"""

import hmac
import logging
import secrets
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.db.models.functions import Now

from checkin.draw import commitment_of
from checkin.errors import CheckInsNotReady
from checkin.models import CheckIn, DailySeed, DropItem, DropTable
from checkin.queries import day_of
from users.models import User

logger = logging.getLogger(__name__)

# Counted from the beginning of the day, so this is 24 hours after its end.
REVEALED_AFTER = timedelta(hours=48)
_SALT_BYTES = 32
# The number of days whose seeds are shown, up to the newest public one.
DAYS_SHOWN = 14


def commit_and_reveal(*, now: datetime) -> int:
    """Ensure seeds for today and tomorrow, reveal due ones, and return how many were revealed."""
    with transaction.atomic(durable=True):
        for ahead in range(2):
            seed_of(day_of(now) + timedelta(days=ahead))
    return sum(_reveal(row) for row in _due(now).order_by("day"))


def is_overdue(day: date, *, now: datetime) -> bool:
    """Return whether the day's seed is overdue for revealing."""
    return _due(now).filter(day=day).exists()


def _due(now: datetime) -> QuerySet[DailySeed]:
    return DailySeed.objects.filter(day__lte=day_of(now - REVEALED_AFTER), revealed_at=None)


def seed_of(day: date) -> DailySeed:
    """Return the row of the day; the first of concurrent callers creates it."""
    row = DailySeed.objects.filter(day=day).first()
    if row is not None:
        return row
    if not settings.CHECKIN_SEED_SECRETS:
        raise ImproperlyConfigured("This process has no CHECKIN_SEED_SECRETS.")
    salt = secrets.token_bytes(_SALT_BYTES)
    commitment = commitment_of(_derive(settings.CHECKIN_SEED_SECRETS[0], day, salt))
    row = DailySeed(day=day, salt=salt, commitment=commitment)
    DailySeed.objects.bulk_create([row], ignore_conflicts=True)
    return DailySeed.objects.get(day=day)


def secret_seed_of(row: DailySeed) -> bytes:
    """
    Return the secret seed of a day on which draws are still possible.

    Raises:
        CheckInsNotReady: the seed is already public, or no secret of this process reproduces it.
    """
    if row.revealed_at is not None:
        raise CheckInsNotReady("The seed of the day is already public. Retry later.")
    for secret in settings.CHECKIN_SEED_SECRETS:
        seed = _derive(secret, row.day, bytes(row.salt))
        if hmac.compare_digest(commitment_of(seed), row.commitment):
            return seed
    raise CheckInsNotReady("The seed of the day is unavailable. Retry later.")


def _derive(secret: str, day: date, salt: bytes) -> bytes:
    return hmac.digest(secret.encode(), b"check-in seed " + day.isoformat().encode() + b" " + salt, "sha256")


def _reveal(row: DailySeed) -> int:
    """Publish the seed, once; return how many were published. A seed whose secret was lost stays unpublished."""
    try:
        seed = secret_seed_of(row).hex()
    except CheckInsNotReady:
        logger.exception("the seed of %s cannot be revealed", row.day)
        return 0
    unrevealed = DailySeed.objects.filter(pk=row.pk, revealed_at=None)
    return unrevealed.update(revealed_seed=seed, revealed_at=Now())


@dataclass(frozen=True, kw_only=True)
class FairnessRecord:
    """Commitments, public seeds (newest first), and the user's draws under them with their tables."""

    today: DailySeed
    tomorrow: DailySeed
    revealed: list[DailySeed]
    draws: list[CheckIn]
    tables: list[DropTable]


def fairness_record_of(*, user: User, now: datetime) -> FairnessRecord:
    """Return the user's record; create commitments that beat's task has not created yet."""
    today = day_of(now)
    with transaction.atomic(durable=True):
        committed = [seed_of(today + timedelta(days=ahead)) for ahead in range(2)]
    oldest = day_of(now - REVEALED_AFTER) - timedelta(days=DAYS_SHOWN - 1)
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
