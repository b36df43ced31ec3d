"""Durations of all processes add up, and none is lost or counted twice because Redis is away."""

import itertools
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings
from redis import Redis

from devstack.services.stack import Services
from gateway.common import metrics
from gateway.common.metrics import Histogram, Reporter
from signer import logs


@pytest.fixture(autouse=True)
def hash_in_redis(services: Services) -> Iterator[None]:
    """What this process and Redis have counted before is forgotten."""
    client = Redis.from_url(services.redis_url)
    client.delete(metrics._KEY)
    for histogram in metrics._counted_here:
        histogram.take()
    yield
    client.delete(metrics._KEY)


@pytest.fixture
def histogram() -> Iterator[Histogram]:
    """One with a label."""
    yield Histogram("test_seconds", "Nothing.", label="kind", bounds=(0.1, 1))
    metrics._counted_here.pop()


def answered(name: str) -> dict[tuple[str, ...], float]:
    """Return the histogram's values as `/metrics` returns them, by what they are, and label and bound."""
    registry = CollectorRegistry(auto_describe=False)

    class Collected:
        def collect(self) -> Iterator[Metric]:
            yield from metrics.histograms()

    registry.register(Collected())
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        (sample.name.rpartition("_")[2], *sample.labels.values()): sample.value
        for family in families
        if family.name == f"gateway_{name}"
        for sample in family.samples
    }


def test_counts_of_several_processes_are_summed(histogram: Histogram) -> None:
    reporters = [Reporter() for _ in range(3)]
    assert answered("test_seconds") == {}
    for reporter in reporters:
        for seconds in (0.05, 0.1, 0.5, 7):
            histogram.observe(seconds, "one kind")
        reporter.report()
        reporter.report()
    histogram.observe(2, "another")
    reporters[0].report()

    counts = answered("test_seconds")
    assert [counts["bucket", "one kind", bound] for bound in ("0.1", "1.0", "+Inf")] == [6, 9, 12]
    assert counts["sum", "one kind"] == pytest.approx(3 * 7.65)
    assert (counts["count", "one kind"], counts["count", "another"]) == (12, 1)


def test_durations_that_redis_missed_are_reported_once_it_is_back(
    histogram: Histogram, services: Services, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = Reporter()
    histogram.observe(0.5, "x")
    reporter.report()
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    for _ in range(3):
        histogram.observe(0.5, "x")
        reporter.report()
    # Neither 0, which Prometheus would take for a reset, nor any other counter.
    assert list(metrics.histograms()) == []
    assert sum("durations wait" in record.message for record in caplog.records) == 1

    settings.REDIS_URL = services.redis_url
    reporter.report()
    reporter.report()
    assert answered("test_seconds")["count", "x"] == 4


def test_a_forked_process_reports_only_its_own_counts(histogram: Histogram) -> None:
    reporter = metrics.reporter()
    histogram.observe(0.5, "x")
    child = os.fork()
    if child == 0:
        histogram.observe(0.5, "x")
        is_new = metrics.reporter() is not reporter
        metrics.reporter().report()
        os._exit(0 if is_new else 1)
    assert os.waitpid(child, 0)[1] == 0
    reporter.report()
    assert answered("test_seconds")["count", "x"] == 2


def test_dropped_log_lines_are_counted_from_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_MAX_WAITING_BYTES", 0)
    output, reporter = logs.OUTPUT, Reporter()
    assert answered("log_lines_dropped") == {("total",): 0}
    for _ in range(3):
        output.put("too much")
    reporter.report()
    assert answered("log_lines_dropped") == {("total",): 3}


def test_threads_lose_no_count(histogram: Histogram) -> None:
    reporter, seconds = Reporter(), [random.choice((0.01, 0.5, 3)) for _ in range(4000)]
    with ThreadPoolExecutor(8) as threads:
        for place, _ in enumerate(threads.map(histogram.observe, seconds, itertools.repeat("x"))):
            if place % 500 == 0:
                reporter.report()
    reporter.report()
    assert answered("test_seconds")["count", "x"] == len(seconds)


def test_a_started_reporter_reports_when_it_stops(histogram: Histogram) -> None:
    reporter = Reporter()
    for expected in (1, 2):
        reporter.start()
        reporter.start()
        histogram.observe(1, "x")
        reporter.stop()
        reporter.stop()
        assert answered("test_seconds")["count", "x"] == expected


@pytest.mark.django_db
def test_each_statement_is_counted_once_whatever_else_watches_the_session() -> None:
    metrics.SQL.take()
    with (
        connection.execute_wrapper(lambda execute, *arguments: execute(*arguments)),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT 1")
    assert sum(count for field, count in metrics.SQL.take().items() if " sum " not in field) == 1
