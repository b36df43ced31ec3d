"""The relay's gauges: its calls and its relayers."""

from collections.abc import Iterator
from datetime import timedelta

from django.utils import timezone
from prometheus_client.core import Metric

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.common.metrics import gauge, gauges, register
from relay import queries
from relay.models import RelayTransaction
from relay.services.accepting import unsigned
from relay.services.fleet import losses
from relay.services.sending import loops
from relay.services.settling import reorganisations

_Status = RelayTransaction.Status


@register
def calls() -> Iterator[Metric]:
    """Yield the state of calls, in two statements."""
    figures = queries.figures()
    yield gauges(
        "relay_calls_in_progress",
        "Calls that are accepted and not settled.",
        "status",
        {_Status.PENDING.value: figures.pending, _Status.SUBMITTED.value: figures.submitted},
    )
    yield gauges(
        "relay_calls_ended_in_last_hour",
        "Calls that were settled within the last hour, of those accepted within the last 25 hours.",
        "status",
        queries.ended(since=timezone.now() - timedelta(hours=1)),
    )
    yield gauge(
        "relay_oldest_call_age_seconds",
        "Since the oldest call in progress was accepted.",
        figures.oldest_age,
    )
    yield gauge(
        "relay_oldest_unsent_age_seconds",
        "Since the oldest attempt was signed that was never sent; 0 without one.",
        figures.unsent_age,
    )
    yield gauge(
        "relay_oldest_unmined_age_seconds",
        "Since a call was first sent of which nothing is mined, the oldest; 0 without one.",
        figures.unmined_age,
    )


@register
def nodes() -> Iterator[Metric]:
    """Yield how the nodes look to the process that answers; it checks them every few seconds."""
    health = get_chain_client().nodes()
    yield gauges(
        "chain_node_in_rotation",
        "1 where the node is asked, 0 where it does not answer, is of another chain, has stopped or lags.",
        "node",
        {node.name: not node.fault for node in health},
    )
    yield gauges(
        "chain_node_head_age_seconds",
        "Age of the node's newest block, at the last check.",
        "node",
        {node.name: node.head_age_seconds for node in health if node.head_age_seconds is not None},
    )
    yield gauge(
        "chain_nodes_needed",
        "How many nodes must say the same before a call is settled or an account nonce moves.",
        get_chain().quorum,
    )


@register
def relayers() -> Iterator[Metric]:
    """Yield what each relayer holds and has in flight, in one statement."""
    rows = queries.relayers()
    yield gauges(
        "relayer_balance_wei",
        "Wei that the account held when the tracker last read it.",
        "relayer",
        {row.address: row.balance_wei for row in rows},
    )
    yield gauges(
        "relayer_read_timestamp_seconds",
        "When the tracker last read the account from a node, in unix seconds.",
        "relayer",
        {row.address: row.synced_at.timestamp() for row in rows if row.synced_at},
    )
    yield gauges(
        "relayer_account_nonces_in_flight",
        "Account nonces that are taken and not mined.",
        "relayer",
        {row.address: row.in_flight for row in rows},
    )
    yield gauges(
        "relayer_active",
        "1 where the relayer takes new calls, 0 where it is paused or quarantined.",
        "relayer",
        {row.address: row.is_active for row in rows},
    )
    yield gauges(
        "relayer_quarantined",
        "1 where the chain showed that the relayer's key is used elsewhere, until staff resume it.",
        "relayer",
        {row.address: row.quarantined_at is not None for row in rows},
    )


@register
def treasury() -> Iterator[Metric]:
    """Yield what the treasury holds and pays, in two statements."""
    paid_wei, age = queries.top_ups(since=timezone.now() - timedelta(days=1))
    yield gauges(
        "treasury_balance_wei",
        "Wei that the account held from which relayers are topped up, when it was last read.",
        "treasury",
        {row.address: row.balance_wei for row in queries.treasuries()},
    )
    yield gauge(
        "treasury_paid_in_last_day_wei",
        "Wei that the treasury has sent to relayers within 24 hours.",
        paid_wei,
    )
    yield gauge(
        "treasury_top_up_age_seconds",
        "Since the transfer from the treasury was begun that is not mined; 0 without one.",
        age,
    )


@register
def reorganisations_of_chain() -> Iterator[Metric]:
    """Yield what reorganisations have undone, and the newest final block, in one statement."""
    figures = reorganisations.counts(since=timezone.now() - timedelta(days=1))
    yield gauge(
        "relay_settlements_reversed_in_last_day",
        "Settlements undone within 24 hours, because their block disappeared.",
        figures.reversed_settlements,
    )
    yield gauge(
        "relay_gaps_filled_in_last_day",
        "Account nonces that no call would have used, filled by a self-transfer within 24 hours.",
        figures.filled_gaps,
    )
    yield gauge(
        "relay_final_block_replaced",
        "1 while the nodes have another block where ours was final; nothing is settled meanwhile.",
        figures.is_replaced,
    )
    yield gauge(
        "relay_final_block",
        "The newest block up to which settled calls were compared with the chain for good; 0 before the first.",
        figures.final_block,
    )


@register
def unsigned_calls() -> Iterator[Metric]:
    """Yield what waits for a signature from elsewhere, in one statement."""
    waiting = unsigned.waiting()
    yield gauge(
        "relay_calls_unsigned", "Calls with an account nonce that wait for their signature.", waiting.calls
    )
    yield gauge(
        "relay_oldest_unsigned_age_seconds",
        "Since the call that has waited longest for its signature; 0 without one.",
        waiting.oldest_seconds,
    )


@register
def loss_budget() -> Iterator[Metric]:
    """Yield what the service has lost within the hour, and may lose, in one statement."""
    usage = losses.usage(now=timezone.now())
    yield gauge("relay_lost_wei", "Wei of gas lost within the last hour, which no user pays.", usage.lost_wei)
    yield gauge(
        "relay_loss_reserved_wei",
        "Wei of gas that the service may still lose by what is in flight.",
        usage.reserved_wei,
    )
    yield gauge("relay_loss_limit_wei", "Wei of gas that the service may lose in an hour.", usage.limit_wei)


@register
def worker_loops() -> Iterator[Metric]:
    """
    Yield when each loop of the relay worker last ran, and how long each has moved nothing, in two statements.

    A loop that never ran is left out.
    """
    runs = loops.last_runs()
    stalled = {stall.loop: stall.seconds for stall in loops.stalls()}
    yield gauges(
        "relay_loop_stalled_seconds",
        "For how long something has been due that the loop does not move; 0 where it moves or nothing is due.",
        "loop",
        {loop: stalled.get(loop, 0) for loop in (loops.BROADCASTING, loops.TRACKING)},
    )
    yield gauges(
        "relay_loop_ended_timestamp_seconds",
        "When the work of the loop last ended, however it did, in unix seconds.",
        "loop",
        {run.loop: run.ended_at.timestamp() for run in runs if run.ended_at},
    )
    yield gauges(
        "relay_loop_succeeded_timestamp_seconds",
        "When the work of the loop last ended without an error, in unix seconds.",
        "loop",
        {run.loop: run.succeeded_at.timestamp() for run in runs if run.succeeded_at},
    )
