"""
The metrics of `/metrics`: gauges that each app reads from its rows, and histograms of durations.

Each app registers a collector, which reads its rows at each scrape in a fixed number of statements, so any process can
respond for the whole service. Each process counts durations in memory. A process that has started its `reporter` adds
them to a hash in Redis every few seconds, so the histograms cover all processes, including those that have ended. If
Redis loses the hash, the histograms start at 0 again, which Prometheus handles as a counter reset. While Redis is
unavailable, they are absent.
"""

import functools
import itertools
import logging
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from redis.exceptions import RedisError

from gateway.common.redis_urls import text_client
from signer import logs

logger = logging.getLogger(__name__)

PREFIX = "gateway_"
_collectors: list[Callable[[], Iterable[Metric]]] = []


def register(collector: Callable[[], Iterable[Metric]]) -> Callable[[], Iterable[Metric]]:
    """Decorator: add the metrics that this function yields to `/metrics`."""
    _collectors.append(collector)
    return collector


def collect() -> Iterator[Metric]:
    for collector in _collectors:
        yield from collector()


def gauge(name: str, documentation: str, value: float) -> Metric:
    """Return a gauge of the whole service. The documentation is a sentence that names the unit."""
    return GaugeMetricFamily(PREFIX + name, documentation, value=float(value))


def gauges(name: str, documentation: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, documentation, labels=[label])
    for label_value, value in values.items():
        family.add_metric([label_value], float(value))
    return family


_KEY = "gateway:durations"
_REPORT_SECONDS = 10.0
_INFINITE, _SUM, _TOTAL = "+Inf", "sum", "total"
# Upper bounds in seconds: SHORT for parts of a request, LONG for the time from a call's acceptance to its settlement.
SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LONG = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 45, 60, 120, 300, 600, 1800, 3600)

# Held only for a few additions at a time.
_lock = threading.Lock()
_counted_here: "list[Histogram | Counter]" = []


class Histogram:
    """Durations of one kind, in seconds, with at most one label. Thread-safe."""

    def __init__(
        self, name: str, documentation: str, *, label: str = "", bounds: tuple[float, ...] = SHORT
    ) -> None:
        self.name, self.documentation, self.label = name, documentation, label
        self.bounds = bounds
        self.limits = [*(str(float(bound)) for bound in bounds), _INFINITE]
        # For each label value: the count of each bucket, then the sum of the durations.
        self._counted: dict[str, list[float]] = {}
        _counted_here.append(self)

    def observe(self, seconds: float, label_value: str = "") -> None:
        """Count one duration."""
        with _lock:
            counts = self._counted.get(label_value)
            if counts is None:
                counts = self._counted[label_value] = [0.0] * (len(self.bounds) + 2)
            counts[bisect_left(self.bounds, seconds)] += 1
            counts[-1] += seconds

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the duration of the block, even if it raises."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.observe(time.perf_counter() - started)

    def take(self) -> dict[str, float]:
        """Return and reset the counts since the last call, by field of the hash in Redis."""
        with _lock:
            counted, self._counted = self._counted, {}
        return {
            f"{self.name} {limit} {label_value}": count
            for label_value, counts in counted.items()
            for limit, count in zip([*self.limits, _SUM], counts, strict=True)
            if count
        }

    def family(self, hash_in_redis: dict[str, str]) -> Metric:
        """Return the histogram in Prometheus's form."""
        family = HistogramMetricFamily(
            PREFIX + self.name, self.documentation, labels=[self.label] if self.label else []
        )
        stored: dict[str, dict[str, float]] = {}
        for field, count in hash_in_redis.items():
            name, limit, label_value = field.split(" ", 2)
            if name == self.name:
                stored.setdefault(label_value, {})[limit] = float(count)
        for label_value, counts in sorted(stored.items()):
            totals = itertools.accumulate(counts.get(limit, 0) for limit in self.limits)
            buckets = list(zip(self.limits, totals, strict=True))
            family.add_metric([label_value] if self.label else [], buckets, counts.get(_SUM, 0))
        return family


class Counter:
    """
    Events of one kind, counted by label values, which must not contain spaces. Thread-safe.

    Values in `known` are reported from 0 on, so that Prometheus sees their first increase.
    """

    def __init__(
        self, name: str, documentation: str, *, labels: tuple[str, ...], known: tuple[str, ...] = ()
    ) -> None:
        self.name, self.documentation, self.labels, self.known = name, documentation, labels, known
        self._counted: dict[str, float] = {}
        _counted_here.append(self)

    def add(self, *label_values: str) -> None:
        """Count one event."""
        key = " ".join(label_values)
        with _lock:
            self._counted[key] = self._counted.get(key, 0.0) + 1

    def take(self) -> dict[str, float]:
        """Return and reset the counts since the last call, by field of the hash in Redis."""
        with _lock:
            counted, self._counted = self._counted, {}
        return {f"{self.name} {_TOTAL} {key}": count for key, count in counted.items()}

    def family(self, hash_in_redis: dict[str, str]) -> Metric:
        """Return the counter in Prometheus's form."""
        family = CounterMetricFamily(PREFIX + self.name, self.documentation, labels=self.labels)
        counts = dict.fromkeys(self.known, 0.0)
        for field, count in hash_in_redis.items():
            name, _, key = field.split(" ", 2)
            if name == self.name:
                counts[key] = float(count)
        for key, total in sorted(counts.items()):
            family.add_metric(key.split(" "), total)
        return family


# All are defined here, so that each process reports all of them, whichever modules it has imported.
ACCEPTANCE = Histogram(
    "relay_acceptance_seconds", "From a relay call's arrival to its hash or error.", label="outcome"
)
BROADCAST = Histogram(
    "relay_broadcast_seconds",
    "From the signature of an attempt to its first acceptance by a node.",
    bounds=LONG,
)
MINED = Histogram(
    "relay_mined_seconds",
    "From an attempt's first acceptance by a node to its block.",
    bounds=LONG,
)
SETTLED = Histogram("relay_settled_seconds", "From a call's acceptance to its settlement.", bounds=LONG)
CHAIN_REQUEST = Histogram(
    "chain_request_seconds", "Time of one request to a node, single or batch.", label="node"
)
CHAIN_WRONG_ANSWERS = Counter(
    "chain_wrong_answers",
    "Responses of a node that violate the method's specification, by the method of the call.",
    labels=("node", "method"),
)
CHAIN_BATCH_LIMIT = Counter(
    "chain_batches_refused",
    "Batches that a node took only in smaller pieces, by the number of calls that it takes.",
    labels=("node", "limit"),
)
LOCK_TIMEOUT, SESSION_LOST, DISK_FULL, READ_ONLY = "lock-timeout", "session-lost", "disk-full", "read-only"
DATABASE_ERRORS = Counter(
    "database_errors",
    "Statements without lock or disk space or in a read-only session, and sessions that the server has ended.",
    labels=("error",),
    known=(LOCK_TIMEOUT, SESSION_LOST, DISK_FULL, READ_ONLY),
)
STRIPE_REQUEST = Histogram(
    "stripe_request_seconds", "Time of one request to Stripe, including the retries of its library."
)
SQL = Histogram("sql_seconds", "Time of a statement, from sending it to receiving its rows.")
LOG_LINES_DROPPED = Counter(
    "log_lines_dropped",
    "Log lines that were dropped because nothing read the log.",
    labels=(),
    known=("",),
)
logs.OUTPUT.on_drop = LOG_LINES_DROPPED.add


@register
def histograms() -> Iterator[Metric]:
    """
    Yield every histogram and counter, in one round trip to Redis; nothing while Redis is unavailable.

    After values of 0, Prometheus would count all earlier events again.
    """
    try:
        stored = text_client(settings.REDIS_URL).hgetall(_KEY)
    except RedisError as error:
        logger.warning("the durations cannot be read: %s", type(error).__name__)
        return
    for metric in _counted_here:
        yield metric.family(stored)


class Reporter:
    """Adds the durations that this process has counted to Redis, every few seconds from `start` on."""

    def __init__(self) -> None:
        # Counts that Redis has not received yet.
        self._due: dict[str, float] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_out = False

    def start(self) -> None:
        """Start the thread, a daemon; does nothing if it runs."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="durations", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Report the remaining counts, and end the thread."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None

    def report(self) -> None:
        """
        Add the counts to Redis; keep them for the next report while Redis is unavailable.

        If Redis's response is lost, the next report adds the same counts again.
        """
        for metric in _counted_here:
            for field, count in metric.take().items():
                self._due[field] = self._due.get(field, 0) + count
        if not self._due:
            return
        pipeline = text_client(settings.REDIS_URL).pipeline()
        for field, count in self._due.items():
            pipeline.hincrbyfloat(_KEY, field, count)
        try:
            pipeline.execute()
        except RedisError as error:
            if not self._is_out:
                logger.warning("durations wait to be reported: %s", type(error).__name__)
            self._is_out = True
        else:
            self._due.clear()
            self._is_out = False

    def _run(self) -> None:
        while not self._stopping.wait(_REPORT_SECONDS):
            self.report()
        self.report()


@functools.cache
def reporter() -> Reporter:
    """Return the process's reporter."""
    return Reporter()


def _forget_parent() -> None:
    """Start anew in a forked process, because the parent reports its own counts."""
    _lock.release()
    reporter.cache_clear()
    for metric in _counted_here:
        metric.take()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_forget_parent)


class Seen:
    """When PostgreSQL last responded to a statement of this process, by the monotonic clock."""

    at = float("-inf")


database_seen = Seen()


def observed(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute a statement and count its duration; its session (`gateway.common.postgresql`) counts its error."""
    started = time.perf_counter()
    try:
        result = execute(sql, params, many, context)
        database_seen.at = time.monotonic()
        return result
    except DatabaseError as error:
        context["connection"].count_error(error)
        raise
    finally:
        SQL.observe(time.perf_counter() - started)
