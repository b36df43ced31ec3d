"""
The time by the database's clock, which all hosts share.

A row's time is often written on one host and compared on another. If each used its own clock, a host whose clock is
ahead would end sessions, quotes and attempts of the others too early. Each process therefore measures every few seconds
how far the database's clock is from its own, and corrects its own accordingly, for the first time before it does any
work. It also reports the difference to `/metrics`.
"""

import functools
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import Error, connection
from django.utils import timezone
from prometheus_client.core import Metric
from redis.exceptions import RedisError

from gateway.common.db import only_row
from gateway.common.metrics import gauges, register
from gateway.common.redis_urls import text_client

logger = logging.getLogger(__name__)
_INTERVAL_SECONDS = 10.0
# Until the first measurement succeeds.
_FIRST_INTERVAL_SECONDS = 1.0
# Smaller differences are within the error of the measurement, and do no harm.
_TOLERATED_SECONDS = 0.5
# A measurement that takes longer is too inexact.
_LONGEST_SECONDS = 1.0
_KEY = "gateway:clocks"
_KEPT_SECONDS = 300


class Clock:
    """This process's clock, corrected by the last measurement."""

    def __init__(self) -> None:
        self.correction = timedelta(0)
        self.is_measured = False

    def measure(self) -> float | None:
        """
        Compare with the database's clock; return by how many seconds this host is ahead, or None if that took too long.

        Raises:
            django.db.Error: the database is unavailable; the previous correction stays in use.
        """
        began = time.time()
        (seconds,) = only_row("SELECT extract(epoch FROM clock_timestamp())::float", {})
        ended = time.time()
        if not 0 <= ended - began <= _LONGEST_SECONDS:
            return None
        ahead = (began + ended) / 2 - float(seconds)
        self.correction = timedelta(seconds=-ahead if abs(ahead) > _TOLERATED_SECONDS else 0)
        self.is_measured = True
        return ahead


_clock = Clock()


def now() -> datetime:
    """Return the current time by the database's clock, or by this host's until the first measurement."""
    return timezone.now() + _clock.correction


class ClockChecks(threading.Thread):
    """A thread that measures every few seconds and reports the difference to Redis, until `end`."""

    def __init__(self) -> None:
        super().__init__(name="clock", daemon=True)
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            self.check()
            self._stopping.wait(_INTERVAL_SECONDS if _clock.is_measured else _FIRST_INTERVAL_SECONDS)

    def end(self) -> None:
        """End after the current check."""
        self._stopping.set()
        self.join()

    def check(self) -> None:
        """Measure and report once."""
        try:
            ahead = _clock.measure()
            if ahead is not None:
                report = json.dumps([ahead, now().timestamp()])
                text_client(settings.REDIS_URL).hset(_KEY, socket.gethostname(), report)
        except (Error, RedisError) as error:
            logger.info("the clock was not compared or reported: %s", type(error).__name__)
        finally:
            connection.close()


@functools.cache
def checks() -> ClockChecks:
    """Return this process's thread."""
    return ClockChecks()


def start() -> None:
    """
    Measure, and start the checks of this process; does nothing if they run.

    While the database is unavailable, the process starts without a measurement: no request of it succeeds either.
    """
    if not checks().is_alive():
        checks.cache_clear()
        measure_first()
        checks().start()


def measure_first() -> None:
    """Measure unless this process, or the one that forked it, has done so."""
    if not _clock.is_measured:
        checks().check()


def stop() -> None:
    """End the checks of this process; does nothing if they do not run."""
    if checks().is_alive():
        checks().end()


@register
def skews() -> Iterator[Metric]:
    """Yield how far each host's clock is from the database's; none while Redis is unavailable."""
    redis = text_client(settings.REDIS_URL)
    try:
        reports = {host: json.loads(report) for host, report in redis.hgetall(_KEY).items()}
        old = now().timestamp() - _KEPT_SECONDS
        for host in [host for host, (_, at) in reports.items() if at < old]:
            del reports[host]
            redis.hdel(_KEY, host)
    except RedisError as error:
        logger.warning("the clocks cannot be read: %s", type(error).__name__)
        reports = {}
    yield gauges(
        "clock_ahead_seconds",
        "Seconds by which the host's clock is ahead of the database's.",
        "host",
        {host: ahead for host, (ahead, _) in sorted(reports.items())},
    )
