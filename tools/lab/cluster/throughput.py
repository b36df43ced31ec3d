"""
`python -m lab cluster-throughput`: the CPU cost of a relay call by number of hosts, which share one machine.

Each size is measured twice: in closed loop for the throughput, and in open loop, at a rate per web host below the
machine's limit, for the cost of a call.
"""

import os
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from devstack.console import echo, markdown
from devstack.files import write_json
from devstack.services.server import Server
from lab.bench.calls import Wallets
from lab.bench.load import Load
from lab.bench.meter import Meter
from lab.bench.records import Records
from lab.bench.rounds import relay_round
from lab.bench.stack import Stack, this_checkout
from lab.cluster import network
from lab.cluster.stack import Cluster, running_cluster

_CLIENTS_PER_WEB = 8
_WARM_UP_CALLS = 100
# More than a machine with two cores can accept in a second.
_MOST_CALLS_PER_SECOND = 250
_TARGETS = 4
# HAProxy checks every second and needs two equal results.
_SETTLE_SECONDS = 4
_PARTS = ("web", "relay worker", "PostgreSQL", "node", "signer")
_HEAD = (
    "web hosts",
    "relay workers",
    "settled per second",
    "accepted within, closed loop (median)",
    "offered per second",
    "accepted within, open loop (median)",
    *(f"{part}, ms a call" for part in _PARTS),
    "together",
    "beside the first row",
)


@dataclass(frozen=True, order=True)
class Size:
    """The number of hosts."""

    webs: int
    workers: int


SIZES = tuple(Size(webs, workers) for workers in (1, 2) for webs in (1, 2, 3))


@dataclass(frozen=True)
class Options:
    """The rounds, their seconds, the calls per second for each web host, and the file to write."""

    rounds: int
    seconds: float
    rate: float
    results: Path
    directory: Path


@dataclass(frozen=True)
class Measured:
    """A round of one size: rates of the closed loop, CPU time of the open loop, and latencies of both."""

    webs: int
    workers: int
    settled_per_second: float
    closed_p50_ms: float
    offered_per_second: float
    open_p50_ms: float
    cpu_ms: Mapping[str, float]
    others_share_of_machine: float
    wrong: Sequence[str]


def run(options: Options) -> int:
    """Measure every size in each round, in random order; return 1 if one failed reconciliation."""
    measured: list[Measured] = []
    with running_cluster(options.directory) as cluster:
        stack = Stack(
            this_checkout("keystore"),
            _described(cluster),
            cluster.prepared.owner_environment,
            Meter(os.getpid()),
        )
        records, wallets = Records(stack), Wallets(stack, _TARGETS)
        try:
            relay_round(stack, records, Load(wallets.many_profiles(_WARM_UP_CALLS), _CLIENTS_PER_WEB, 60))
            for _ in range(options.rounds):
                for size in random.sample(SIZES, len(SIZES)):
                    _resize(cluster, size)
                    measured.append(_measure(stack, records, wallets, size, options))
                    _print_round(measured[-1])
                    _write(options.results, stack, measured)
        finally:
            records.close()
    echo(table(measured))
    return int(any(each.wrong for each in measured))


def table(measured: Sequence[Measured]) -> str:
    """Return the medians of each size as a Markdown table, without rounds that failed reconciliation."""
    sound = [each for each in measured if not each.wrong]
    rows: list[Sequence[str]] = []
    first = 0.0
    for size in SIZES:
        rounds = [each for each in sound if Size(each.webs, each.workers) == size]
        if not rounds:
            continue
        together = median(_together(each) for each in rounds)
        first = first or together
        cells = [
            str(size.webs),
            str(size.workers),
            f"{median(each.settled_per_second for each in rounds):.1f}",
            f"{median(each.closed_p50_ms for each in rounds):.0f} ms",
            f"{median(each.offered_per_second for each in rounds):.0f}",
            f"{median(each.open_p50_ms for each in rounds):.0f} ms",
            *(f"{median(each.cpu_ms[part] for each in rounds):.1f}" for part in _PARTS),
            f"{together:.1f}",
            f"× {together / first:.2f}",
        ]
        rows.append(cells)
    return markdown(_HEAD, rows)


def _together(measured: Measured) -> float:
    return sum(measured.cpu_ms[part] for part in _PARTS)


def _described(cluster: Cluster) -> dict[str, Any]:
    outside = cluster.outside
    return {
        "base_url": cluster.base_url,
        "database_url": outside.database_url,
        "rpc_url": outside.rpc_url,
        "chain_id": outside.chain_id,
        "profiles": cluster.profiles,
    }


def _resize(cluster: Cluster, size: Size) -> None:
    """Start or stop web servers and relay workers to reach this size; the databases stay."""
    for hosts, kind, number in (
        (network.WEBS, "web", size.webs),
        (network.WORKERS, "worker-relay", size.workers),
    ):
        for place, host in enumerate(hosts):
            _have(cluster.servers[f"{host.name}-{kind}"], runs=place < number)
    time.sleep(_SETTLE_SECONDS)


def _have(server: Server, *, runs: bool) -> None:
    if not runs:
        server.stop()
    elif server.has_ended:
        server.start()
        server.wait()


def _measure(stack: Stack, records: Records, wallets: Wallets, size: Size, options: Options) -> Measured:
    clients = _CLIENTS_PER_WEB * size.webs
    number = int(_MOST_CALLS_PER_SECOND * options.seconds)
    closed = relay_round(stack, records, Load(wallets.many_profiles(number), clients, options.seconds))
    rate = options.rate * size.webs
    lanes = wallets.many_profiles(int(rate * options.seconds) + 1)
    opened = relay_round(stack, records, Load(lanes, 2 * clients, options.seconds, rate))
    return Measured(
        size.webs,
        size.workers,
        closed["settled_per_second"],
        closed["p50_ms"],
        rate,
        opened["p50_ms"],
        opened["cpu_ms"],
        max(closed["others_share_of_machine"], opened["others_share_of_machine"]),
        [*closed["wrong"], *opened["wrong"]],
    )


def _print_round(measured: Measured) -> None:
    echo(
        f"  {measured.webs} web, {measured.workers} workers: {measured.settled_per_second:.1f} settled a second;"
        f" {_together(measured):.1f} ms a call at {measured.offered_per_second:.0f} calls a second"
    )
    for line in measured.wrong:
        echo(f"    ✗ {line}")


def _write(path: Path, stack: Stack, measured: Sequence[Measured]) -> None:
    content = {
        "commit": stack.checkout.commit,
        "cores": os.cpu_count(),
        "rounds": [asdict(each) for each in measured],
    }
    write_json(path, content)
