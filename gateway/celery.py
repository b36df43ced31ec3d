"""
The Celery application, and beat's scheduler.

Work is stored as rows in PostgreSQL; a message only makes a worker start it earlier.
"""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from celery import Celery, Task, signals
from celery.beat import PersistentScheduler, ScheduleEntry, SchedulingError
from celery.worker import consumer
from django.db import close_old_connections, connections
from django_structlog.celery.steps import DjangoStructLogInitStep
from kombu.exceptions import OperationalError
from kombu.transport import redis as redis_transport
from kombu.transport import virtual
from redis.exceptions import RedisError

from gateway.common import clock, metrics, sql_functions, tasks
from gateway.common.logging import log_uncaught

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")
logger = logging.getLogger(__name__)
_RECONNECT_SECONDS = 1.0

app = Celery("gateway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# A task's log lines carry the id of the request that sent it.
app.steps["worker"].add(DjangoStructLogInitStep)
app.conf.worker_consumer = "gateway.celery:Consumer"
# The relay worker's loops, which need no messages. Given by name, because the module imports models.
app.steps["worker"].add("relay.worker:RelayLoops")


class QoS(redis_transport.QoS):
    """
    Counts a worker's unacknowledged messages, up to its prefetch limit.

    If an acknowledgement does not reach Redis, kombu's class keeps counting the message. Once the prefetch limit is
    reached, the worker takes no more messages, even after Redis has recovered. If the connection is already closed,
    kombu raises an error that ends the worker. This class stops counting the message in both cases; Redis redelivers it
    after the visibility timeout.
    """

    def ack(self, delivery_tag: str) -> None:
        """Acknowledge the message and stop counting it, even if the acknowledgement fails."""
        with self._uncounted(delivery_tag):
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Return the message to its queue or drop it, and stop counting it, even if that fails."""
        with self._uncounted(delivery_tag):
            super().reject(delivery_tag, requeue=requeue)

    def restore_unacked(self, client: Any = None) -> None:
        """Return all counted messages to their queues if there is a connection, and stop counting them."""
        taken: dict[str, Any] = self._delivered or {}
        try:
            if self._is_connected:
                super().restore_unacked(client)
        finally:
            taken.clear()

    @property
    def _is_connected(self) -> bool:
        transport = self.channel.connection
        return transport is not None and transport.client is not None

    @contextmanager
    def _uncounted(self, delivery_tag: str) -> Iterator[None]:
        try:
            if not self._is_connected:
                raise ConnectionError("The connection to Redis is closed.")
            yield
        except Exception:
            virtual.QoS.ack(self, delivery_tag)
            raise


redis_transport.Channel.QoS = QoS
# A demoted, full or loading Redis returns READONLY, UNBLOCKED, OOM, LOADING or MASTERDOWN. Kombu treats most of these
# as programming errors, which end a worker. This treats them as lost connections.
redis_transport.Transport.connection_errors += (RedisError,)


class Consumer(consumer.Consumer):
    """Takes messages, and reconnects after any error, so that no error ends the worker and its other threads."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.connection_errors = (Exception,)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Pause before reconnecting, because Redis may accept every connection and refuse every command."""
        if not isinstance(exc, redis_transport.Transport.connection_errors):
            logger.error("messages could not be taken; the worker connects again", exc_info=exc)
        super().on_connection_error_after_connected(exc)
        time.sleep(_RECONNECT_SECONDS)


@signals.setup_logging.connect
def leave_logging_alone(**_: object) -> None:
    """Keep the logging of the settings. If no receiver is connected, Celery replaces it with its own."""
    log_uncaught()


@signals.worker_init.connect
@signals.worker_process_init.connect
def keep_one_connection(**_: object) -> None:
    """
    Keep one connection to the database for each thread of this worker process.

    Otherwise Django would open and close a pool, with its threads, around every task. The connection is checked before
    each task, because there is no caller that would retry the task.
    """
    for wrapper in connections.all():
        wrapper.settings_dict["OPTIONS"].pop("pool", None)
        wrapper.settings_dict |= {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}


@signals.worker_init.connect
def measure_clock(**_: object) -> None:
    """Measure before the first task; forked processes start with this measurement."""
    clock.measure_first()


@signals.worker_process_init.connect
def report_durations(**_: object) -> None:
    """Report durations and compare clocks in each forked process; the relay worker starts both with its loops."""
    clock.start()
    metrics.reporter().start()


@signals.worker_ready.connect
def compare_functions(**_: object) -> None:
    """Log the functions of the database that differ from the code."""
    sql_functions.log_differing()


@signals.worker_ready.connect
@signals.beat_init.connect
def report_counts(**_: object) -> None:
    """Report what the main process of a worker, or beat, counts, such as dropped log lines."""
    metrics.reporter().start()


@signals.worker_process_shutdown.connect
def write_last_lines(**_: object) -> None:
    """Write the log's last lines, because a forked process ends without `logging.shutdown`."""
    logging.shutdown()


@signals.task_prerun.connect
def check_connections(sender: Task[..., object], **_: object) -> None:
    if not sender.request.is_eager:
        close_old_connections()


@signals.task_postrun.connect
def record_end(*, task: Any, state: str | None, **_: object) -> None:
    tasks.record_heartbeat(task=task.name, state=state or "")


@signals.heartbeat_sent.connect
def worker_is_alive(**_: object) -> None:
    """Renew the health check's file, because this worker is connected and not stalled."""
    tasks.touch_alive_file()


class Clock(PersistentScheduler):
    """
    Beat's scheduler, which sends due tasks. If a message cannot be sent, the task's next run does the work.

    After a restart or an outage, the end of each task's last run, which Redis remembers, decides when it is due. Missed
    tasks therefore run at once. The start and the end of an outage are logged once each, as WARNING; other errors are
    logged every time.
    """

    _is_out = _has_recalled = False

    def tick(self, *args: Any, **options: Any) -> float:
        """Send due tasks, and renew the file of the health check."""
        tasks.touch_alive_file()
        if not self._has_recalled:
            self._recall()
        return float(super().tick(*args, **options))

    def _recall(self) -> None:
        """Read when each task last ended; while Redis is unavailable, the next tick tries again."""
        recorded = tasks.read_heartbeats(queues=())
        if recorded is None:
            return
        self._has_recalled = True
        for entry in self.schedule.values():
            if ended := recorded.ended.get(str(entry.task)):
                entry.last_run_at = datetime.fromtimestamp(ended, UTC)
        # Has `tick` sort the entries again.
        self._heap = None

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            if not isinstance(error.__context__, OperationalError | OSError):
                logger.exception("%s cannot be sent", entry.name)
            elif not self._is_out:
                self._is_out = True
                logger.warning("broker unavailable, tasks are not sent: %s", type(error.__context__).__name__)
            return
        if self._is_out:
            self._is_out, self._has_recalled = False, False
            logger.warning("broker available again, tasks are sent, first %s", entry.name)
