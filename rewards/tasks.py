"""Celery tasks of rewards."""

from typing import Any

from celery import shared_task

from rewards.services import modifiers


@shared_task(name="rewards.purge")
def purge(**_: Any) -> None:
    modifiers.purge()
