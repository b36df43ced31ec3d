"""Celery tasks of the check-in, run by beat."""

from typing import Any

from celery import shared_task
from django.utils import timezone

from checkin.services import seeds


@shared_task(name="checkin.keep_seeds")
def keep_seeds(**_: Any) -> None:
    seeds.commit_and_reveal(now=timezone.now())
