"""Doors for Celery. PostgreSQL holds the work; a task that fails is made up for by the next tick."""

from typing import Any

from celery import shared_task
from django.utils import timezone

from gateway.chain.errors import NodeUnavailable
from relay.services import broadcasting, reconcile, sweeping, tracking


@shared_task(name="relay.broadcast", throws=(NodeUnavailable,))
def broadcast(*, relayer_id: int, **_: Any) -> None:
    """Send what the relayer has signed."""
    broadcasting.broadcast(relayer_id=relayer_id, now=timezone.now())


@shared_task(name="relay.track", throws=(NodeUnavailable,))
def track(**_: Any) -> None:
    """Read receipts and settle what is confirmed."""
    tracking.track(now=timezone.now())


@shared_task(name="relay.sweep", throws=(NodeUnavailable,))
def sweep(**_: Any) -> None:
    """Send what the messages lost."""
    sweeping.sweep(now=timezone.now())


class ChainDiffers(Exception):
    """What was captured is not what the chain took. Raised so that the task counts as failed; nothing catches it."""


# It reads everything; other tasks may take two minutes.
@shared_task(name="relay.reconcile", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def reconcile_with_chain(**_: Any) -> None:
    """
    Compare what was captured with the receipts; the service logs and stores what differs.

    Raises:
        ChainDiffers: something does.
    """
    run = reconcile.reconcile(now=timezone.now())
    if run is not None and run.counts["findings"]:
        raise ChainDiffers(f"{run.counts['findings']} differences, run {run.pk}")
