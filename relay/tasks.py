"""Doors for Celery. PostgreSQL holds the work; a task that fails is made up for by the next tick."""

from typing import Any

from celery import shared_task
from django.utils import timezone

from gateway.chain.errors import NodeUnavailable
from relay.services import broadcasting, sweeping, tracking


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
