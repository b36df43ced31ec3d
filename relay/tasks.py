"""Celery tasks. The work is in PostgreSQL; after a task that failed or was lost, the next run does it."""

import time
from typing import Any

from celery import shared_task
from django.utils import timezone

from gateway.chain.errors import NodeUnavailable
from gateway.common import tasks
from relay.services import broadcasting, reconciliation, tracking

# Calls of the next moment are sent in the same batch; a block takes many times longer.
_DEBOUNCE_SECONDS = 0.1


@shared_task(name="relay.broadcast", throws=(NodeUnavailable,))
def broadcast(**_: Any) -> None:
    """Send what was signed, in one batch for all calls of a moment."""
    time.sleep(_DEBOUNCE_SECONDS)
    tasks.release_claim("relay.broadcast")
    broadcasting.broadcast(now=timezone.now())


@shared_task(name="relay.track", throws=(NodeUnavailable,))
def track(**_: Any) -> None:
    """Read receipts and settle what is confirmed."""
    tracking.track(now=timezone.now())


@shared_task(name="relay.sweep", throws=(NodeUnavailable,))
def sweep(**_: Any) -> None:
    """Send what lost tasks have left unsent."""
    broadcasting.sweep(now=timezone.now())


class ChainDiffers(Exception):
    """Captured credits differ from the gas charged. Nothing catches it, so the task counts as failed."""


# It reads everything and so takes longer than the two minutes of other tasks.
@shared_task(name="relay.reconcile", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def reconcile_with_chain(**_: Any) -> None:
    """
    Compare captured credits with receipts; the service logs and stores the differences.

    Raises:
        ChainDiffers: there are differences.
    """
    run = reconciliation.reconcile(now=timezone.now())
    if run is not None and run.counts["findings"]:
        raise ChainDiffers(f"{run.counts['findings']} differences, run {run.pk}")
