"""Celery tasks of the check-in, run by beat."""

from typing import Any

from celery import shared_task

from checkin.services import seeds
from gateway.common import clock


@shared_task(name="checkin.keep_seeds")
def keep_seeds(**_: Any) -> None:
    seeds.commit_and_reveal(now=clock.now())
