"""Doors for Celery: earnings that are due, the keys of verifiers, old modifiers, the ledger's nightly audit."""

import logging
from typing import Any

from celery import shared_task
from django.utils import timezone

from credits.services import audits, earnings_release, modifiers, postback_purge, verifier_keys

logger = logging.getLogger(__name__)


class LedgerDiffers(Exception):
    """A total of the ledger is not what its rows say. Raised so that the task counts as failed; nothing catches it."""


@shared_task(name="credits.release_earnings")
def release_earnings(**_: Any) -> None:
    """Give the credits of held earnings that are due."""
    earnings_release.release_due(now=timezone.now())


@shared_task(name="credits.refresh_verifier_keys")
def refresh_verifier_keys(**_: Any) -> None:
    """Fetch the keys that sign postbacks."""
    verifier_keys.refresh(now=timezone.now())


@shared_task(name="credits.purge")
def purge(**_: Any) -> None:
    """Forget modifiers that ended long ago, and old postbacks that no credit was given for."""
    modifiers.purge()
    deleted = postback_purge.purge(now=timezone.now())
    if deleted:
        logger.info("%s old postbacks without a credit are forgotten", deleted)


# A whole ledger takes longer than other tasks may; the statement has a limit of its own.
@shared_task(name="credits.audit", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def audit(**_: Any) -> None:
    """
    Recompute the ledger; the service logs and stores what differs.

    Raises:
        LedgerDiffers: there is one.
    """
    run = audits.audit_ledger(now=timezone.now())
    if run is None:
        return
    counts = run.counts
    checked = f"{counts['accounts']} accounts, {counts['entries']} entries, {counts['holds']} holds checked"
    if counts["findings"]:
        raise LedgerDiffers(f"{counts['findings']} differences; {checked}")
    logger.info("ledger audit: no difference; %s", checked)
