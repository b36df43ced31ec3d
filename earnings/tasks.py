"""Celery tasks of earnings."""

import logging
from typing import Any

from celery import shared_task

from earnings.services import earnings, networks, postbacks
from gateway.common import clock

logger = logging.getLogger(__name__)


@shared_task(name="earnings.release")
def release_earnings(**_: Any) -> None:
    earnings.release_due(now=clock.now())


@shared_task(name="earnings.refresh_verifier_keys")
def refresh_verifier_keys(**_: Any) -> None:
    networks.refresh_verifier_keys(now=clock.now())


@shared_task(name="earnings.purge")
def purge(**_: Any) -> None:
    deleted = postbacks.purge(now=clock.now())
    if deleted:
        logger.info("%s old postbacks without a credit were deleted", deleted)
