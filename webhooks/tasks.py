"""Celery tasks of webhooks."""

import logging
from typing import Any

from celery import shared_task
from django.utils import timezone

from webhooks.services import collection, delivery, messages

logger = logging.getLogger(__name__)


@shared_task(name="webhooks.collect")
def collect(**_: Any) -> None:
    collection.collect(now=timezone.now())


@shared_task(name="webhooks.deliver")
def deliver(**_: Any) -> None:
    delivery.deliver_due(now=timezone.now())


@shared_task(name="webhooks.purge")
def purge(**_: Any) -> None:
    deleted = messages.purge(now=timezone.now())
    if deleted:
        logger.info("%s old webhook messages were deleted", deleted)
