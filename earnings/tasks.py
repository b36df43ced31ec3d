"""Celery tasks of earnings: what is due, the keys of verifiers, old postbacks."""

import logging
from typing import Any

from celery import shared_task
from django.utils import timezone

from earnings.services import inbox, networks, release

logger = logging.getLogger(__name__)


@shared_task(name="earnings.release")
def release_earnings(**_: Any) -> None:
    """Give the credits of held earnings that are due."""
    release.release_due(now=timezone.now())


@shared_task(name="earnings.refresh_verifier_keys")
def refresh_verifier_keys(**_: Any) -> None:
    """Fetch the keys that sign postbacks."""
    networks.refresh(now=timezone.now())


@shared_task(name="earnings.purge")
def purge(**_: Any) -> None:
    """Delete old postbacks that no credit was given for."""
    deleted = inbox.purge(now=timezone.now())
    if deleted:
        logger.info("%s old postbacks without a credit are deleted", deleted)
