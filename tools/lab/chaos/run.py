"""`python -m lab chaos`: one fault after the other, the least tried first, until the time is over."""

import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devstack.console import echo
from lab.chaos.arena import Arena
from lab.chaos.faults import FAULTS, Fault
from lab.chaos.results import Results, Row, by_action, table
from lab.chaos.stack import running_stack

_MOST_SHOWN, _MOST_TOGETHER = 5, 8


@dataclass(frozen=True)
class Options:
    """The faults to try by prefixes of their names, the minutes of the run, and the trials per fault."""

    faults: Sequence[str]
    minutes: float
    times: int
    results: Path


def run(options: Options) -> int:
    """Try the faults; return 1 if there was an unexpected difference or a fault was never tried."""
    chosen = {name: fault for name, fault in FAULTS.items() if name.startswith(tuple(options.faults))}
    if not chosen:
        raise RuntimeError(
            f"No fault begins with {', '.join(options.faults)}; choose from {', '.join(FAULTS)}."
        )
    results = Results(options.results)
    for size in sorted({_size(fault) for fault in chosen.values()}):
        group = {name: fault for name, fault in chosen.items() if _size(fault) == size}
        ends_at = time.monotonic() + options.minutes * 60 * len(group) / len(chosen)
        while _left(group, results, options) and time.monotonic() < ends_at:
            _try_on_one_stack(group, options, results, ends_at=ends_at, size=size)
    rows = {name: results.rows[name] for name in chosen if name in results.rows}
    echo(table(by_action({f"{name} *" if FAULTS[name].is_believed else name: rows[name] for name in rows})))
    if len(rows) < len(chosen):
        echo(f"Not tried yet: {', '.join(name for name in chosen if name not in rows)}")
    unexpected = [name for name, row in rows.items() if not row.is_clean and not FAULTS[name].is_believed]
    return int(len(rows) < len(chosen) or bool(unexpected))


def _size(fault: Fault) -> tuple[int, int]:
    """Return the number of nodes and relay workers that the fault needs."""
    return fault.nodes, fault.relay_workers


def _left(group: dict[str, Fault], results: Results, options: Options) -> list[str]:
    """Return the faults that need more trials, the least tried first, equal ones in random order."""
    left = [name for name in group if results.times(name) < options.times]
    random.shuffle(left)
    return sorted(left, key=results.times)


def _next(left: Sequence[str]) -> list[str]:
    """Return the first fault, and those that can share its load."""
    kind = FAULTS[left[0]].kind
    return [name for name in left if name == left[0] or (kind and FAULTS[name].kind == kind)][:_MOST_TOGETHER]


def _try_on_one_stack(
    group: dict[str, Fault], options: Options, results: Results, *, ends_at: float, size: tuple[int, int]
) -> None:
    """Try faults until one has done damage, which the verifier would find after later faults again."""
    nodes, relay_workers = size
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as folder,
        running_stack(Path(folder), nodes=nodes, relay_workers=relay_workers) as stack,
    ):
        arena = Arena(stack)
        while (left := _left(group, results, options)) and time.monotonic() < ends_at:
            names = _next(left)
            began = time.monotonic()
            trials = arena.try_out({name: group[name] for name in names})
            for name in names:
                if name in trials:
                    results.add(name, trials[name])
                else:
                    del group[name]
            echo(_summary(trials, seconds=time.monotonic() - began))
            if not all(trial.is_clean for trial in trials.values()):
                return


def _summary(trials: Mapping[str, Row], *, seconds: float) -> str:
    lines = [
        f"  {'✓' if row.is_clean else '✗'} {name}: {row.in_flight} in flight" for name, row in trials.items()
    ]
    for row in list(trials.values())[:1]:
        calls = sum(trial.calls for trial in trials.values())
        figures = f"settled after {row.recoveries[-1]:.1f} s, /healthz {row.healthz_seconds * 1e3:.0f} ms"
        figures += f", others slowed {row.slowed:.1f}×" if row.slowed else ""
        lines += [f"    {calls} calls, {figures}, {seconds:.0f} s in all", *row.wrong[:_MOST_SHOWN]]
    return "\n".join(lines)
