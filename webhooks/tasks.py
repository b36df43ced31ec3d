"""Celery tasks of webhooks."""

import logging
from typing import Any

from celery import shared_task

from gateway.common import clock
from webhooks.services import collection, delivery, messages, notices

logger = logging.getLogger(__name__)


@shared_task(name="webhooks.collect")
def collect(**_: Any) -> None:
    collection.collect(now=clock.now())


@shared_task(name="webhooks.deliver")
def deliver(**_: Any) -> None:
    delivery.deliver_due(now=clock.now())


@shared_task(name="webhooks.send_notices")
def send_notices(**_: Any) -> None:
    notices.send_due(now=clock.now())


@shared_task(name="webhooks.purge")
def purge(**_: Any) -> None:
    notices.purge(now=clock.now())
    deleted = messages.purge(now=clock.now())
    if deleted:
        logger.info("%s old webhook messages were deleted", deleted)
