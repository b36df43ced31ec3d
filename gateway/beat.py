"""Beat's clock, which logs an outage of the broker once and not at every missed tick."""

import logging
from typing import Any

from celery.beat import PersistentScheduler, ScheduleEntry, SchedulingError
from kombu.exceptions import OperationalError

from gateway import lifesigns

logger = logging.getLogger(__name__)


class Clock(PersistentScheduler):
    """
    Sends due tasks. If one cannot be sent, the next one does the work, which PostgreSQL holds.

    The beginning of an outage is one line at WARNING and its end another; any other
    failure is logged in full every time.
    """

    _is_out = False

    def tick(self, *args: Any, **options: Any) -> float:
        """Send what is due, and show the health check that the clock is running."""
        lifesigns.touch()
        return float(super().tick(*args, **options))

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send a due task."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            if not isinstance(error.__context__, OperationalError | OSError):
                logger.exception("%s cannot be sent", entry.name)
            elif not self._is_out:
                self._is_out = True
                logger.warning(
                    "broker away, ticks are missed from now on: %s", type(error.__context__).__name__
                )
            return
        if self._is_out:
            self._is_out = False
            logger.warning("broker back, ticks go on with %s", entry.name)
