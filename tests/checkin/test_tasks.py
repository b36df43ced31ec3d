"""The task that beat runs."""

from datetime import timedelta

import pytest
from celery import current_app
from django.conf import settings
from django.utils import timezone

from checkin import tasks
from checkin.models import DailySeed
from checkin.services import seeds

pytestmark = pytest.mark.django_db


def test_beat_calls_a_task_that_exists() -> None:
    current_app.loader.import_default_modules()
    scheduled = {str(entry["task"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    ours = {name for name in scheduled if name.startswith("checkin.")}
    assert ours == {"checkin.keep_seeds"}
    assert ours <= set(current_app.tasks)


def test_it_promises_tomorrow_and_tells_what_is_due() -> None:
    today = timezone.now().date()
    due = seeds.seed_of(today - timedelta(days=3))

    tasks.keep_seeds(later_argument=1)

    due.refresh_from_db()
    assert len(due.revealed_seed) == 64
    assert DailySeed.objects.filter(day__gt=today, revealed_at=None).count() == 1
