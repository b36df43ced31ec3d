"""Each stage of a call is counted once, whatever is repeated."""

import pytest
from django.conf import settings

from gateway.chain.errors import NodeUnavailable
from gateway.common import metrics
from gateway.common.errors import DomainError
from gateway.common.metrics import Histogram
from tests.relay.chain import Chain, node_away
from tests.relay.conftest import Accept
from tests.relay.workers import broadcast_all, track

pytestmark = pytest.mark.django_db


def counted(histogram: Histogram) -> dict[str, float]:
    """Return how many were counted since the last time, by the label's value."""
    totals: dict[str, float] = {}
    for field, count in histogram.take().items():
        _, limit, label_value = field.split(" ", 2)
        if limit != "sum":
            totals[label_value] = totals.get(label_value, 0) + count
    return totals


def test_each_stage_of_a_call_is_counted_once(accept: Accept, chain: Chain) -> None:
    stages = (metrics.ACCEPTANCE, metrics.BROADCAST, metrics.MINED, metrics.SETTLED)
    for histogram in (*stages, metrics.CHAIN_REQUEST):
        histogram.take()

    accept()
    for _ in range(2):
        broadcast_all()
    for _ in range(settings.CONFIRMATIONS + 1):
        chain.mine()
        track()

    assert [counted(stage) for stage in stages] == [{"accepted": 1}, {"": 1}, {"": 1}, {"": 1}]
    assert sum(counted(metrics.CHAIN_REQUEST).values()) > 5


def test_a_refusal_is_counted_apart_from_an_outage(accept: Accept) -> None:
    metrics.ACCEPTANCE.take()
    with pytest.raises(DomainError):
        accept(ahead=3000)
    with pytest.raises(NodeUnavailable), node_away():
        accept()
    assert counted(metrics.ACCEPTANCE) == {"refused": 1, "unavailable": 1}
