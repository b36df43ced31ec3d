"""The task that beat runs."""

from datetime import timedelta

import pytest
from django.utils import timezone

from checkin import tasks
from checkin.models import DailySeed
from checkin.services import seeds

pytestmark = pytest.mark.django_db


def test_the_task_commits_to_tomorrows_seed_and_reveals_due_seeds() -> None:
    today = timezone.now().date()
    due = seeds.seed_of(today - timedelta(days=3))

    tasks.keep_seeds(later_argument=1)

    due.refresh_from_db()
    assert len(due.revealed_seed) == 64
    assert DailySeed.objects.filter(day__gt=today, revealed_at=None).count() == 1
