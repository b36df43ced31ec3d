from typing import Any

from celery import shared_task
from django.utils import timezone

from credits.tasks import logger
from earnings.services import inbox, networks, release
from rewards.services import modifiers


@shared_task(name="credits.release_earnings")
def release_earnings(**_: Any) -> None:
    """Give the credits of held earnings that are due."""
    release.release_due(now=timezone.now())


@shared_task(name="credits.refresh_verifier_keys")
def refresh_verifier_keys(**_: Any) -> None:
    """Fetch the keys that sign postbacks."""
    networks.refresh(now=timezone.now())


@shared_task(name="credits.purge")
def purge(**_: Any) -> None:
    """Forget modifiers that ended long ago, and old postbacks that no credit was given for."""
    modifiers.purge()
    deleted = inbox.purge(now=timezone.now())
    if deleted:
        logger.info("%s old postbacks without a credit are forgotten", deleted)
