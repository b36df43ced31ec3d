"""Figures in the form Prometheus expects. All are gauges: the rows are counted at each scrape."""

from collections.abc import Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

_PREFIX = "gateway_"


def gauge(name: str, told: str, value: float) -> Metric:
    """Return a figure for the whole service; `told` says in one sentence what it counts, and its unit."""
    return GaugeMetricFamily(_PREFIX + name, told, value=float(value))


def gauges(name: str, told: str, label: str, values: Mapping[str, float]) -> Metric:
    """Return one figure for each value of a label."""
    found = GaugeMetricFamily(_PREFIX + name, told, labels=[label])
    for of, value in values.items():
        found.add_metric([of], float(value))
    return found
