"""
The figures of `/metrics`. Each app registers a collector of its own; `gateway.metrics` answers all of them.

A collector reads the rows at each scrape, in a fixed number of statements, so that any process
answers for the whole service. Only durations are counted as they happen: `gateway.common.durations`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

PREFIX = "gateway_"
_collectors: list[Callable[[], Iterable[Metric]]] = []


def register(collector: Callable[[], Iterable[Metric]]) -> Callable[[], Iterable[Metric]]:
    """Decorator: answer the gauges that this function yields."""
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
