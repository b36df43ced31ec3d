"""Seeds are committed to ahead, cannot be foreseen, and are revealed two days after their day began."""

import secrets
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, ProgrammingError, transaction

from checkin.draw import commitment_of
from checkin.errors import CheckInsNotReady
from checkin.models import DailySeed
from checkin.services import seeds
from checkin.services.checkins import execute
from tests.checkin.rows import everything
from users.models import User

pytestmark = pytest.mark.django_db


def test_today_and_tomorrow_are_promised(now: datetime) -> None:
    assert seeds.commit_and_reveal(now=now) == 0
    days = list(DailySeed.objects.order_by("day").values_list("day", flat=True))
    assert days == [now.date(), now.date() + timedelta(days=1)]
    before = everything()
    seeds.commit_and_reveal(now=now)
    assert everything() == before


def test_the_commitment_is_that_of_the_seed_and_seeds_differ(now: datetime) -> None:
    rows = [seeds.seed_of(now.date() + timedelta(days=ahead)) for ahead in range(5)]
    made = [seeds.secret_seed_of(row) for row in rows]
    assert [row.commitment for row in rows] == [commitment_of(seed) for seed in made]
    assert len(set(made)) == 5
    assert all(len(seed) == 32 for seed in made)


def test_a_seed_is_revealed_48_hours_after_its_day_began_and_not_before(now: datetime) -> None:
    row = seeds.seed_of(now.date())
    begun = now.replace(hour=0, minute=0, second=0, microsecond=0)
    secret = seeds.secret_seed_of(row).hex()

    assert seeds.commit_and_reveal(now=begun + timedelta(hours=48, microseconds=-1)) == 0
    row.refresh_from_db()
    assert (row.revealed_at, row.revealed_seed) == (None, "")
    assert seeds.commit_and_reveal(now=begun + timedelta(hours=48)) == 1
    row.refresh_from_db()
    assert row.revealed_seed == secret
    assert commitment_of(bytes.fromhex(row.revealed_seed)) == row.commitment
    assert seeds.commit_and_reveal(now=begun + timedelta(hours=49)) == 0


def test_one_run_reveals_all_due_seeds(now: datetime) -> None:
    for age in range(2, 7):
        seeds.seed_of(now.date() - timedelta(days=age))
    assert seeds.commit_and_reveal(now=now) == 5


def test_the_row_does_not_contain_the_seed_before_it_is_revealed(now: datetime) -> None:
    row = seeds.seed_of(now.date())
    secret = seeds.secret_seed_of(row)
    texts = [str(value) for value in DailySeed.objects.values_list().get()] + [repr(row), str(row)]
    assert not [text for text in texts if secret.hex() in text or str(secret) in text]
    assert bytes(row.salt) != secret


def test_the_database_alone_does_not_make_the_seed(now: datetime, settings: Any) -> None:
    row = seeds.seed_of(now.date())
    settings.CHECKIN_SEED_SECRETS = [secrets.token_hex(32)]
    with pytest.raises(CheckInsNotReady):
        seeds.secret_seed_of(row)


def test_a_replaced_secret_still_decrypts_its_seeds(now: datetime, settings: Any) -> None:
    old = seeds.seed_of(now.date())
    made = seeds.secret_seed_of(old)
    settings.CHECKIN_SEED_SECRETS = [secrets.token_hex(32), *settings.CHECKIN_SEED_SECRETS]
    assert seeds.secret_seed_of(old) == made

    new = seeds.seed_of(now.date() + timedelta(days=1))
    settings.CHECKIN_SEED_SECRETS = settings.CHECKIN_SEED_SECRETS[:1]
    assert commitment_of(seeds.secret_seed_of(new)) == new.commitment


def test_a_lost_secret_refuses_check_ins_and_keeps_no_other_seed_back(
    proven: User, now: datetime, settings: Any
) -> None:
    lost = [seeds.seed_of(now.date() - timedelta(days=5)), seeds.seed_of(now.date())]
    settings.CHECKIN_SEED_SECRETS = [secrets.token_hex(32)]
    seeds.seed_of(now.date() - timedelta(days=4))
    before = everything()
    with pytest.raises(CheckInsNotReady):
        execute(user=proven, now=now)
    assert everything() == before

    assert seeds.commit_and_reveal(now=now) == 1
    assert not DailySeed.objects.filter(pk__in=[row.pk for row in lost], revealed_at__isnull=False).exists()


def test_nothing_is_drawn_from_a_seed_that_is_public(proven: User, now: datetime) -> None:
    seeds.seed_of(now.date())
    seeds.commit_and_reveal(now=now + timedelta(days=2))
    before = everything()
    with pytest.raises(CheckInsNotReady):
        execute(user=proven, now=now)
    assert everything() == before


def test_a_commitment_cannot_be_changed_or_deleted(now: datetime) -> None:
    row = seeds.seed_of(now.date())
    rows = DailySeed.objects.filter(pk=row.pk)
    for change in (
        lambda: rows.update(commitment=secrets.token_hex(32)),
        lambda: rows.update(salt=secrets.token_bytes(32)),
        lambda: rows.update(day=now.date() + timedelta(days=9)),
        rows.delete,
    ):
        with pytest.raises(ProgrammingError), transaction.atomic():
            change()
    seeds.commit_and_reveal(now=now + timedelta(days=2))
    with pytest.raises(ProgrammingError), transaction.atomic():
        rows.update(revealed_seed=secrets.token_hex(32))


def test_a_revealed_seed_requires_its_time(now: datetime) -> None:
    row = seeds.seed_of(now.date())
    for half in ({"revealed_seed": secrets.token_hex(32)}, {"revealed_at": now}):
        with pytest.raises(IntegrityError), transaction.atomic():
            DailySeed.objects.filter(pk=row.pk).update(**half)


def test_a_process_without_the_secret_promises_no_day(now: datetime, settings: Any) -> None:
    settings.CHECKIN_SEED_SECRETS = []
    before = everything()
    with pytest.raises(ImproperlyConfigured, match="CHECKIN_SEED_SECRETS"):
        seeds.seed_of((now + timedelta(days=9)).date())
    assert everything() == before
