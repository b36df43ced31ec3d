"""
`python -m lab mutated-answers`: one node of one, of two and of three returns nonsense under load.

A proxy mutates a share of the first node's responses. Afterwards the verifier of `chaos` reads chain and rows.
"""

import os
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3

from devstack.console import echo, markdown
from devstack.files import write_json
from lab.bench.meter import SERVICE, Meter, megabytes
from lab.chaos.alerts import METRICS_TOKEN
from lab.chaos.arena import Arena
from lab.chaos.faults import Fault
from lab.chaos.mutations import Mutations
from lab.chaos.stack import Stack, running_stack

# Of the first node's responses. With three nodes soon only the checks ask it, so more of them are mutated.
_SHARE, _SHARE_OF_THREE = 0.3, 0.9
_MOST_SECONDS = 900
_MOST_MEGABYTES = 600
# The metrics that the alerts on nodes compare.
_OUT_OF_ROTATION = re.compile(r'^gateway_chain_node_in_rotation{node="([^"]+)"} 0\.0$', re.MULTILINE)
_WRONG_ANSWERS = re.compile(
    r'^gateway_chain_wrong_answers_total{method="([^"]*)",node="([^"]+)"} (\d+)\.0$', re.MULTILINE
)


@dataclass(frozen=True)
class Options:
    """Mutations in all, the numbers of nodes, the seed, and the file of the results."""

    count: int
    nodes: Sequence[int]
    seed: int
    results: Path


@dataclass
class Trial:
    """
    What happened with this many nodes.

    `liar` is the node that returns nonsense. `most_megabytes` is the largest memory of one process of the service.
    `out_of_rotation` has the nodes that a web process left out at some time, and `alerted` the invalid responses that
    an alert names, by node.
    """

    nodes: int
    mutations: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    outages: Counter[str] = field(default_factory=Counter)
    liar: str = ""
    out_of_rotation: set[str] = field(default_factory=set)
    alerted: dict[str, Counter[str]] = field(default_factory=dict)
    most_megabytes: float = 0
    calls: int = 0
    wrong: list[str] = field(default_factory=list)

    @contextmanager
    def caused(self, count: int, rng: random.Random, stack: Stack) -> Iterator[None]:
        """Mutate responses of the first node until there are `count`."""
        mutations, proxy = (
            Mutations(rng, share=_SHARE if self.nodes < 3 else _SHARE_OF_THREE),
            stack.proxies.nodes[0],
        )
        self.liar = f"127.0.0.1:{proxy.port}"
        ends_at = time.monotonic() + _MOST_SECONDS
        proxy.rule = mutations.rule
        try:
            while mutations.counts.total() < count and time.monotonic() < ends_at:
                time.sleep(0.5)
                self.most_megabytes = max(self.most_megabytes, _largest())
                self._read_metrics(stack.web.url)
        finally:
            proxy.rule = None
        for (kind, _), number in mutations.counts.items():
            self.mutations[kind] += number
        yield

    def _read_metrics(self, base_url: str) -> None:
        headers = {"authorization": f"Bearer {METRICS_TOKEN}"}
        try:
            response = urllib3.request(
                "GET", f"{base_url}/metrics", headers=headers, timeout=30, retries=False
            )
        except urllib3.exceptions.HTTPError:
            # A busy machine; it is read again at once.
            return
        if response.status != 200:
            return
        text = response.data.decode()
        self.out_of_rotation.update(_OUT_OF_ROTATION.findall(text))
        self.alerted = {}
        for method, node, number in _WRONG_ANSWERS.findall(text):
            self.alerted.setdefault(node, Counter())[method] += int(number)

    def findings(self) -> list[str]:
        """Return what must not have happened."""
        unexpected = [status for status in self.statuses if status >= 500 and status != 503]
        if self.nodes > 2:
            unexpected += [status for status in self.statuses if status == 503]
        # Two nodes must agree, so calls wait as long as one of them is out of the rotation.
        wrong = [one for one in self.wrong if self.nodes > 2 or not one.startswith("a hold was open")]
        return [
            *wrong,
            *(
                []
                if self.out_of_rotation == {self.liar}
                else [f"out of the rotation: {sorted(self.out_of_rotation)}"]
            ),
            *([] if set(self.alerted) == {self.liar} else [f"the alert names {sorted(self.alerted)}"]),
            *(f"{self.statuses[status]} answers with status {status}" for status in unexpected),
            *(
                f"{number} calls refused by {code}"
                for code, number in self.refusals.items()
                if self.nodes > 2
            ),
            *(
                [f"a process of {self.most_megabytes:.0f} MB"]
                if self.most_megabytes > _MOST_MEGABYTES
                else []
            ),
        ]


def run(options: Options) -> int:
    """Try each number of nodes; return 1 if something happened that must not."""
    trials: list[Trial] = []
    for nodes in options.nodes:
        trials.append(_tried(nodes, options))
        write_json(
            options.results,
            [{**vars(trial), "out_of_rotation": sorted(trial.out_of_rotation)} for trial in trials],
        )
    rows: list[list[Any]] = [
        [
            f"one of {trial.nodes}",
            trial.mutations.total(),
            trial.calls,
            ", ".join(f"{number} × {status}" for status, number in sorted(trial.statuses.items())),
            f"{trial.most_megabytes:.0f} MB",
            sum(counts.total() for counts in trial.alerted.values()),
            "; ".join(trial.findings()) or "none",
        ]
        for trial in trials
    ]
    echo(
        markdown(
            [
                "nodes",
                "mutations",
                "calls",
                "answers",
                "largest process",
                "wrong answers alerted",
                "findings",
            ],
            rows,
        )
    )
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
    trial.refusals, trial.outages = arena.refusals, arena.outages
    return trial


def _largest() -> float:
    """Return the resident megabytes of the largest process of the service."""
    members = Meter(os.getpid()).members()
    return max((megabytes(process.pid)[0] for kind, process in members if kind in SERVICE), default=0.0)
