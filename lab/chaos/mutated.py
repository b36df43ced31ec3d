"""
`python -m lab mutated-answers`: one node of one, of two and of three answers nonsense under load.

A proxy mutates a share of the first node's responses. Afterwards the verifier of `chaos` reads chain and rows.
"""

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devstack.console import echo, markdown
from devstack.files import write_json
from lab.bench.meter import SERVICE, Meter, megabytes
from lab.chaos.arena import Arena
from lab.chaos.faults import Fault
from lab.chaos.mutations import Mutations
from lab.chaos.stack import Stack, running_stack

_SHARE = 0.3
_MOST_SECONDS = 900
_MOST_MEGABYTES = 600


@dataclass(frozen=True)
class Options:
    """Mutations in all, the numbers of nodes, the seed, and the file of the results."""

    count: int
    nodes: Sequence[int]
    seed: int
    results: Path


@dataclass
class Trial:
    """What happened with this many nodes; `most_megabytes` is the largest memory of one process of the service."""

    nodes: int
    mutations: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    most_megabytes: float = 0
    calls: int = 0
    wrong: list[str] = field(default_factory=list)

    @contextmanager
    def caused(self, count: int, rng: random.Random, stack: Stack) -> Iterator[None]:
        """Mutate answers of the first node until there are `count`."""
        mutations, proxy = Mutations(rng, share=_SHARE), stack.proxies.nodes[0]
        ends_at = time.monotonic() + _MOST_SECONDS
        proxy.rule = mutations.rule
        try:
            while mutations.counts.total() < count and time.monotonic() < ends_at:
                time.sleep(0.5)
                self.most_megabytes = max(self.most_megabytes, _largest())
        finally:
            proxy.rule = None
        for (kind, _), number in mutations.counts.items():
            self.mutations[kind] += number
        yield

    def findings(self) -> list[str]:
        """Return what must not have happened."""
        unexpected = [status for status in self.statuses if status >= 500 and status != 503]
        if self.nodes > 2:
            unexpected += [status for status in self.statuses if status == 503]
        return [
            *self.wrong,
            *(f"{self.statuses[status]} answers with status {status}" for status in unexpected),
            *(
                [f"a process of {self.most_megabytes:.0f} MB"]
                if self.most_megabytes > _MOST_MEGABYTES
                else []
            ),
        ]


def run(options: Options) -> int:
    """Try each number of nodes; return 1 if something happened that must not."""
    trials = [_tried(nodes, options) for nodes in options.nodes]
    rows: list[list[Any]] = [
        [
            f"one of {trial.nodes}",
            trial.mutations.total(),
            trial.calls,
            ", ".join(f"{number} × {status}" for status, number in sorted(trial.statuses.items())),
            f"{trial.most_megabytes:.0f} MB",
            "; ".join(trial.findings()) or "none",
        ]
        for trial in trials
    ]
    echo(markdown(["nodes", "mutations", "calls", "answers", "largest process", "findings"], rows))
    write_json(options.results, [vars(trial) for trial in trials])
    return int(any(trial.findings() for trial in trials))


def _tried(nodes: int, options: Options) -> Trial:
    trial, rng = Trial(nodes), random.Random(f"{options.seed}:{nodes}")  # noqa: S311 - not a secret
    count = options.count // len(options.nodes)
    with (
        tempfile.TemporaryDirectory(prefix="mutated-") as folder,
        running_stack(Path(folder), nodes=nodes) as stack,
    ):
        arena = Arena(stack)
        name = f"mutations, one of {nodes}"
        rows = arena.try_out({name: Fault(lambda of: trial.caused(count, rng, of), nodes)})
    trial.statuses, trial.calls, trial.wrong = arena.statuses, rows[name].calls, rows[name].wrong
    return trial


def _largest() -> float:
    """Return the resident megabytes of the largest process of the service."""
    members = Meter(os.getpid()).members()
    return max((megabytes(process.pid)[0] for kind, process in members if kind in SERVICE), default=0.0)
