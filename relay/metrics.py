"""The relay's gauges: its calls and its relayers."""

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from django.conf import settings
from prometheus_client.core import Metric

from gateway.chain.client import get_chain_client
from gateway.chain.config import chains, get_chain, home, on_chain
from gateway.chain.remote_signing import remote_signer
from gateway.common import clock
from gateway.common.metrics import gauge, gauges, register
from relay.models import RelayTransaction
from relay.queries.figures import ended, relay_counts, top_ups, treasuries, unretired_relayers
from relay.queries.prices import price_states
from relay.services.accepting import unsigned
from relay.services.fleet import losses, tips
from relay.services.sending import loops
from relay.services.settling import reorganisations

_Status = RelayTransaction.Status


def _of_each_chain(collector: Callable[[], Iterable[Metric]]) -> Callable[[], Iterable[Metric]]:
    """Decorator: yield the metrics of all chains. Those of further chains have the label `chain`, their id."""

    def collect() -> list[Metric]:
        families: dict[str, Metric] = {}
        for chain in chains():
            with on_chain(chain.id):
                for metric in collector():
                    if chain is home():
                        families[metric.name] = metric
                        continue
                    for sample in metric.samples:
                        labels = {**sample.labels, "chain": str(chain.id)}
                        families[metric.name].add_sample(sample.name, labels, sample.value)
        return list(families.values())

    return register(collect)


@_of_each_chain
def calls() -> Iterator[Metric]:
    """Yield the state of calls, in two statements."""
    counts = relay_counts()
    yield gauges(
        "relay_calls_in_progress",
        "Calls that are accepted and not settled.",
        "status",
        {_Status.PENDING.value: counts.pending, _Status.SUBMITTED.value: counts.submitted},
    )
    yield gauges(
        "relay_calls_ended_in_last_hour",
        "Calls settled within the last hour, among those accepted within the last 25 hours.",
        "status",
        ended(since=clock.now() - timedelta(hours=1)),
    )
    yield gauge(
        "relay_oldest_call_age_seconds",
        "Age of the oldest call in progress.",
        counts.oldest_age,
    )
    yield gauge(
        "relay_oldest_unsent_age_seconds",
        "Age of the oldest attempt that was never sent; 0 without one.",
        counts.unsent_age,
    )
    yield gauge(
        "relay_oldest_unmined_age_seconds",
        "Time since the first broadcast of the oldest unmined call; 0 without one.",
        counts.unmined_age,
    )


@register
def prices() -> Iterator[Metric]:
    """Yield how much of their limits the prices of further chains have used, in two statements if there are any."""
    further = {str(chain_id): state.use for chain_id, state in price_states().items()}
    yield gauges(
        "relay_price_age_share",
        "Age of the chain's price of a credit as a fraction of its greatest age; above 1 the chain takes no calls.",
        "chain",
        {chain_id: float(use.age_share) for chain_id, use in further.items()},
    )
    yield gauges(
        "relay_price_margin_share",
        "Distance of the chain's price of a credit from the recorded rates as a fraction of its margin; above 1 the "
        "chain takes no calls.",
        "chain",
        {chain_id: float(use.margin_share) for chain_id, use in further.items()},
    )


@_of_each_chain
def nodes() -> Iterator[Metric]:
    """Yield the health of the nodes as seen by this process, which probes them every few seconds."""
    health = get_chain_client().nodes()
    yield gauges(
        "chain_node_in_rotation",
        "1 if the node is in use, 0 if it does not respond, serves another chain, has stopped or lags.",
        "node",
        {node.name: not node.fault for node in health},
    )
    yield gauges(
        "chain_node_head_age_seconds",
        "Age of the node's newest block at the last probe.",
        "node",
        {node.name: node.head_age_seconds for node in health if node.head_age_seconds is not None},
    )
    yield gauge(
        "chain_nodes_needed",
        "How many nodes must agree before a call is settled or an account nonce changes.",
        get_chain().quorum,
    )


@_of_each_chain
def relayers() -> Iterator[Metric]:
    """Yield each relayer's balance and account nonces in flight, in one statement."""
    rows = [row for row in unretired_relayers() if row.chain_id == get_chain().id]
    yield gauges(
        "relayer_balance_wei",
        "Balance of the account in wei, when the tracker last read it.",
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
        "Account nonces that are taken but not mined.",
        "relayer",
        {row.address: row.in_flight for row in rows},
    )
    yield gauges(
        "relayer_active",
        "1 if the relayer takes new calls, 0 if it is paused or quarantined.",
        "relayer",
        {row.address: row.is_active for row in rows},
    )
    yield gauges(
        "relayer_quarantined",
        "1 if the chain shows that the relayer's key was used elsewhere, until staff resume it.",
        "relayer",
        {row.address: row.quarantined_at is not None for row in rows},
    )
    yield gauges(
        "relayer_has_code",
        "1 if the relayer's account has code (EIP-7702), so that its key was used elsewhere.",
        "relayer",
        {row.address: row.has_code for row in rows},
    )


@_of_each_chain
def treasury() -> Iterator[Metric]:
    """Yield the treasury's balance and payments, in two statements."""
    paid_wei, age = top_ups(since=clock.now() - timedelta(days=1))
    yield gauges(
        "treasury_balance_wei",
        "Balance of the treasury in wei, when it was last read.",
        "treasury",
        {row.address: row.balance_wei for row in treasuries() if row.chain_id == get_chain().id},
    )
    yield gauge(
        "treasury_paid_in_last_day_wei",
        "Wei that the treasury sent to relayers within 24 hours.",
        paid_wei,
    )
    yield gauge(
        "treasury_top_up_age_seconds",
        "Age of the unmined transfer from the treasury; 0 without one.",
        age,
    )


@_of_each_chain
def reorganisations_of_chain() -> Iterator[Metric]:
    """Yield the effects of reorganisations, and the newest final block, in one statement."""
    counts = reorganisations.counts(since=clock.now() - timedelta(days=1))
    yield gauge(
        "relay_settlements_reversed_in_last_day",
        "Settlements reversed within 24 hours because their block disappeared.",
        counts.reversed_settlements,
    )
    yield gauge(
        "relay_gaps_filled_in_last_day",
        "Gaps in account nonces that self-transfers filled within 24 hours.",
        counts.filled_gaps,
    )
    yield gauge(
        "relay_final_block_replaced",
        "1 while the nodes have another block in place of our final one; settlement stops meanwhile.",
        counts.is_replaced,
    )
    yield gauge(
        "relay_final_block",
        "The newest final block that settled calls were compared with; 0 before the first.",
        counts.final_block,
    )


@register
def signer() -> Iterator[Metric]:
    """Yield whether the signer responds to this process; keys of the process itself always do."""
    responds = settings.RELAY_SIGNER != "remote" or remote_signer().responds()
    yield gauge("signer_up", "Whether the signer responds (1) or not (0).", responds)


@_of_each_chain
def unsigned_calls() -> Iterator[Metric]:
    """Yield the calls that wait for a remote signature, in one statement."""
    waiting = unsigned.waiting()
    yield gauge(
        "relay_calls_unsigned", "Calls with an account nonce that wait for a signature.", waiting.calls
    )
    yield gauge(
        "relay_oldest_unsigned_age_seconds",
        "Wait of the oldest call without a signature; 0 without one.",
        waiting.oldest_seconds,
    )


@_of_each_chain
def loss_budget() -> Iterator[Metric]:
    """Yield the losses of the last hour, the reservations, and the tip that nodes require, in two statements."""
    usage = losses.usage(now=clock.now())
    yield gauge("relay_lost_wei", "Gas in wei that the service paid within the last hour.", usage.lost_wei)
    yield gauge(
        "relay_loss_reserved_wei",
        "Gas in wei that the service may still have to pay for transactions in flight.",
        usage.reserved_wei,
    )
    yield gauge("relay_loss_limit_wei", "The hourly loss limit in wei.", usage.limit_wei)
    yield gauge(
        "relay_least_tip_wei",
        "The tip per gas that a quorum of nodes requires, while it is above ours; 0 otherwise.",
        tips.least_tip_wei(),
    )


@_of_each_chain
def worker_loops() -> Iterator[Metric]:
    """
    Yield when each loop of the relay worker last ran, and how long it has stalled, in two statements.

    A loop that has never run yields nothing.
    """
    runs = loops.last_runs()
    stalled = {stall.loop: stall.seconds for stall in loops.stalls()}
    yield gauges(
        "relay_loop_stalled_seconds",
        "How long the loop has stalled with work due; 0 while it makes progress or is idle.",
        "loop",
        {loop: stalled.get(loop, 0) for loop in (loops.BROADCASTING, loops.TRACKING)},
    )
    yield gauges(
        "relay_loop_ended_timestamp_seconds",
        "When the loop last ended a run, with or without an error, in unix seconds.",
        "loop",
        {run.loop: run.ended_at.timestamp() for run in runs if run.ended_at},
    )
    yield gauges(
        "relay_loop_succeeded_timestamp_seconds",
        "When the loop last ended a run without an error, in unix seconds.",
        "loop",
        {run.loop: run.succeeded_at.timestamp() for run in runs if run.succeeded_at},
    )
