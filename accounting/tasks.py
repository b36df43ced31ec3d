"""Celery tasks of accounting."""

from typing import Any

from celery import shared_task

from accounting.services import closing
from gateway.common import clock


# Computing lots from the whole ledger may take longer than other tasks may.
@shared_task(name="accounting.prepare_months", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def prepare_months(**_: Any) -> None:
    """Prepare the months that wait for it."""
    closing.prepare_waiting(now=clock.now())
