"""
`python -m lab soak`: all requests of wallets for half an hour, without faults.

The load of `chaos` runs, and wallets also read their accounts. Memory and connections at 20 % of the time are compared
with those at the end; growth after 20 % is a leak. Every periodic task runs repeatedly, so that memory which a task
allocates only once is allocated before the comparison. For the same reason there are early bursts of many clients.
"""

import gc
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from devstack.console import echo
from devstack.files import read_json, write_json
from lab.bench.meter import SERVICE, Meter, megabytes
from lab.chaos.arena import Arena
from lab.chaos.faults import Fault
from lab.chaos.links import Links
from lab.chaos.periodic import Periodic
from lab.chaos.results import Row
from lab.chaos.results import table as outcome_table
from lab.chaos.stack import Stack, running_stack
from lab.chaos.visits import Responses, Visits, counted

_SAMPLES = 120
_EARLY, _LATE = (0.15, 0.25), (0.9, 1.0)
_MOST_GROWTH = 0.05
_MORE_LINKS = 5
# Time for the server to notice closed connections.
_CLOSED_WITHIN_SECONDS = 5
_ALSO_SHOWN = ("PostgreSQL", "Redis")


@dataclass(frozen=True)
class Options:
    """The minutes of the run, and the file to which the figures are added."""

    minutes: float
    results: Path


@dataclass(frozen=True)
class Process:
    """A process of the stack: memory in MB, and open files and connections without those of clients."""

    component: str
    rss_mb: float
    pss_mb: float
    files: int


@dataclass(frozen=True)
class Sample:
    """A sample: processes by id, the service's connections to each server, and open client connections."""

    share: float
    processes: Mapping[int, Process]
    connections: Mapping[str, int]
    clients: int


@dataclass
class Soak:
    """The measurements before, during and after the load."""

    samples: list[Sample] = field(default_factory=list)
    answers: Responses = field(default_factory=Counter)
    without_load: list[Sample] = field(default_factory=list)

    @contextmanager
    def caused(self, minutes: float, visits: Visits, stack: Stack) -> Iterator[None]:
        """Take samples of the stack for this many minutes, instead of a fault."""
        began, seconds = time.monotonic(), minutes * 60
        with visits.running():
            while (share := (time.monotonic() - began) / seconds) < 1:
                if share < _EARLY[0]:
                    visits.rush()
                self.samples.append(_sample(stack, share))
                time.sleep(max(0.5, seconds / _SAMPLES))
            self.samples.append(_sample(stack, 1.0))
        yield

    def growth(self) -> list[dict[str, Any]]:
        """Return early and late figures of each long-lived process; those of PostgreSQL and Redis are summed."""
        early, late = self._during(_EARLY), self._during(_LATE)
        lasting = set.intersection(*(set(sample.processes) for sample in [*early, *late]))
        kinds = {pid: late[-1].processes[pid].component for pid in sorted(lasting)}
        return [
            *(
                _compared(kind, [[s.processes[pid]] for s in early], [[s.processes[pid]] for s in late])
                for pid, kind in kinds.items()
                if kind in SERVICE
            ),
            *(
                _compared(kind, [_all_of(kind, s) for s in early], [_all_of(kind, s) for s in late])
                for kind in _ALSO_SHOWN
            ),
        ]

    def connections(self) -> dict[str, list[int]]:
        """Return the service's number of connections to each server, early and late."""
        early, late = self._during(_EARLY), self._during(_LATE)
        return {
            server: [round(median(s.connections[server] for s in part)) for part in (early, late)]
            for server in late[-1].connections
        }

    def clients(self) -> dict[str, int]:
        """Return the number of open client connections: before, maximum and after."""
        before, after = self.without_load
        return {
            "before": before.clients,
            "most": max(sample.clients for sample in self.samples),
            "after": after.clients,
        }

    def _during(self, part: tuple[float, float]) -> list[Sample]:
        first, last = part
        return [sample for sample in self.samples if first <= sample.share <= last]


def run(options: Options) -> int:
    """Run the load, print the figures and add them to the file; return 1 if there was a problem."""
    soak = Soak()
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as folder,
        running_stack(Path(folder)) as stack,
        counted(stack.prepared.port, soak.answers),
    ):
        soak.without_load.append(_sample(stack, 0.0))
        outcome = _outcome(soak, stack, options.minutes)
        # The wallets' connections end with them.
        gc.collect()
        time.sleep(_CLOSED_WITHIN_SECONDS)
        soak.without_load.append(_sample(stack, 1.0))
    wrong = [*outcome.wrong, *complaints(soak)]
    figures = {
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
        "minutes": options.minutes,
        "answers": {path: dict(counts) for path, counts in sorted(_by_path(soak.answers).items())},
        "processes": soak.growth(),
        "connections": soak.connections(),
        "clients": soak.clients(),
        "outcome": asdict(outcome),
        "wrong": wrong,
    }
    earlier: dict[str, Any] = read_json(options.results)
    write_json(options.results, {"runs": [*earlier.get("runs", []), figures]})
    options.results.chmod(0o644)
    echo("\n\n".join([_responses_table(soak.answers), _memory_table(soak), outcome_table({"none": outcome})]))
    echo("\n".join(f"✗ {one}" for one in wrong) or "✓ no leaks, no failures")
    return int(bool(wrong))


def _outcome(soak: Soak, stack: Stack, minutes: float) -> Row:
    arena = Arena(stack)
    visits = Visits(arena.wallets, arena.recent_hash)
    logs, environment = stack.prepared.directory / "log", stack.prepared.environment
    with Periodic(logs, environment, quick_seconds=minutes * 60 * _EARLY[0]).running():
        return arena.try_out({"none": Fault(partial(soak.caused, minutes, visits))})["none"]


def _sample(stack: Stack, share: float) -> Sample:
    links = Links.now()
    processes = {
        process.pid: Process(component, rss, pss, links.files(process.pid, stack.prepared.port))
        for component, process in Meter(psutil.Process().pid).members()
        for rss, pss in [megabytes(process.pid)]
        if rss
    }
    service = {pid for pid, process in processes.items() if process.component in SERVICE}
    servers = {
        "PostgreSQL": {stack.proxies.postgres.port},
        "Redis": {stack.proxies.redis.port},
        "node": {node.port for node in stack.proxies.nodes},
        "Stripe": {stack.proxies.stripe.port},
    }
    return Sample(
        share,
        processes,
        {name: links.number_to(ports, service) for name, ports in servers.items()},
        sum(links.clients_of(pid, stack.prepared.port) for pid in service),
    )


def _all_of(component: str, sample: Sample) -> list[Process]:
    return [process for process in sample.processes.values() if process.component == component]


def _compared(
    component: str, early: Sequence[Sequence[Process]], late: Sequence[Sequence[Process]]
) -> dict[str, Any]:
    """Return medians over these samples, each the sum of one or more processes."""

    def middle(samples: Sequence[Sequence[Process]], name: str) -> float:
        sums: list[float] = [sum(getattr(process, name) for process in sample) for sample in samples]
        return round(median(sums), 1)

    return {
        "component": component,
        **{name: [middle(early, name), middle(late, name)] for name in ("pss_mb", "rss_mb", "files")},
    }


def complaints(soak: Soak) -> list[str]:
    """Return the signs of leaks and failures."""
    rows = [row for row in soak.growth() if row["component"] in SERVICE]
    memory = [
        f"{row['component']} grows from {row['pss_mb'][0]} to {row['pss_mb'][1]} MB"
        for row in rows
        if row["pss_mb"][1] > row["pss_mb"][0] * (1 + _MOST_GROWTH)
    ]
    files = [
        f"{row['component']} has {row['files'][1]:.0f} open files, {row['files'][0]:.0f} early"
        for row in rows
        if row["files"][1] > row["files"][0] + _MORE_LINKS
    ]
    connections = [
        f"the service has {late} connections to {name}, {early} early"
        for name, (early, late) in soak.connections().items()
        if late > early + _MORE_LINKS
    ]
    clients = soak.clients()
    if clients["after"] > clients["before"] + _MORE_LINKS:
        connections.append(f"{clients['after']} connections of clients are left, {clients['before']} before")
    failures = [
        f"{count} × {status or 'no response'} from {path}"
        for (path, status), count in sorted(soak.answers.items())
        if status == 0 or status >= 500
    ]
    missing = [] if {row["component"] for row in rows} == set(SERVICE) else ["a process of the service ended"]
    return [*memory, *files, *connections, *failures, *missing]


def _by_path(answers: Responses) -> dict[str, Counter[int]]:
    by_path: dict[str, Counter[int]] = {}
    for (path, status), count in answers.items():
        by_path.setdefault(path, Counter())[status] += count
    return by_path


def _responses_table(answers: Responses) -> str:
    rows = [
        f"| `{path}` | {counts.total()} | "
        + ", ".join(f"{count} × {status or 'none'}" for status, count in sorted(counts.items()))
        + " |"
        for path, counts in sorted(_by_path(answers).items())
    ]
    return "\n".join(["| path | requests | answers |", "|---|---:|---|", *rows])


def _memory_table(soak: Soak) -> str:
    def growth(pair: Sequence[float]) -> str:
        return f"{pair[0]} → {pair[1]} ({pair[1] / max(pair[0], 0.1) - 1:+.1%})"

    rows = [
        f"| {row['component']} | {growth(row['pss_mb'])} | {growth(row['rss_mb'])} "
        f"| {row['files'][0]:.0f} → {row['files'][1]:.0f} |"
        for row in soak.growth()
    ]
    links = [f"| to {name} | | | {early} → {late} |" for name, (early, late) in soak.connections().items()]
    clients = " → ".join(map(str, soak.clients().values()))
    links.append(f"| of clients, before, at most and after | | | {clients} |")
    head = ["| process | PSS in MB, at 20 % and at the end | RSS in MB | open files or connections |"]
    return "\n".join([*head, "|---|---|---|---|", *rows, *links])
