"""Everything a scrape answers, in a fixed number of statements."""

from collections.abc import Iterator

from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from gateway.metrics import books, comparisons, relaying, workers


class Figures(Collector):
    """Reads the rows at each scrape and keeps nothing, so any process answers for the whole service."""

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        yield from relaying.calls(now=timezone.now())
        yield from relaying.relayers()
        yield from books.ledger()
        yield from books.doors()
        yield from books.payments()
        yield from comparisons.reconciliations()
        yield from workers.periodic_tasks()


def exposition() -> bytes:
    """Return all figures in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Figures())
    return generate_latest(registry)
