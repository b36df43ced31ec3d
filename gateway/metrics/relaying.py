"""Figures of the relay and of the accounts that pay for it."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from prometheus_client.core import Metric

from gateway.metrics.families import gauge, gauges
from relay import queries
from relay.models import RelayTransaction

_Status = RelayTransaction.Status


def calls(*, now: datetime) -> Iterator[Metric]:
    """Yield the state of calls, in two statements."""
    found = queries.figures()
    yield gauges(
        "relay_calls_in_progress",
        "Calls that are accepted and not settled.",
        "status",
        {_Status.PENDING.value: found.pending, _Status.SUBMITTED.value: found.submitted},
    )
    yield gauges(
        "relay_calls_ended_in_last_hour",
        "Calls that were settled within the last hour, of those accepted within the last 25 hours.",
        "status",
        queries.ended(since=now - timedelta(hours=1)),
    )
    yield gauge(
        "relay_oldest_call_age_seconds", "Since the oldest call in progress was accepted.", found.oldest_age
    )
    yield gauge(
        "relay_oldest_unsent_age_seconds",
        "Since the oldest attempt was signed that was never sent; 0 without one.",
        found.unsent_age,
    )
    yield gauge(
        "relay_oldest_unmined_age_seconds",
        "Since a call was first sent of which nothing is mined, the oldest; 0 without one.",
        found.unmined_age,
    )
    yield gauge("relay_paused", "1 while staff have paused the whole relay.", found.is_paused)


def relayers() -> Iterator[Metric]:
    """Yield what each relayer holds and has in flight, in one statement."""
    found = queries.relayers()
    yield gauges(
        "relayer_balance_wei",
        "Wei that the account held when the tracker last read it.",
        "relayer",
        {row.address: row.balance_wei for row in found},
    )
    yield gauges(
        "relayer_read_timestamp_seconds",
        "When the tracker last read the account from a node, in unix seconds.",
        "relayer",
        {row.address: row.synced_at.timestamp() for row in found if row.synced_at},
    )
    yield gauges(
        "relayer_account_nonces_in_flight",
        "Account nonces that are taken and not mined.",
        "relayer",
        {row.address: row.in_flight for row in found},
    )
    yield gauges(
        "relayer_active",
        "1 where the relayer takes new calls, 0 where staff have paused it.",
        "relayer",
        {row.address: row.is_active for row in found},
    )
