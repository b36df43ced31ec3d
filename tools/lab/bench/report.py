"""The bench's report: a line per round, then medians with their spread, and ratios between commits."""

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devstack.console import echo

# title: path in a round's figures
_MEASURES: Mapping[str, tuple[str, ...]] = {
    "accepted/s": ("accepted_per_second",),
    "settled/s": ("settled_per_second",),
    "settled/s, steady": ("steady", "settled_per_second"),
    "accept p50 ms": ("p50_ms",),
    "accept p99 ms": ("p99_ms",),
    **{
        f"CPU ms, {kind}": ("cpu_ms", kind)
        for kind in (
            "web",
            "relay worker",
            "other workers",
            "signer",
            "service",
            "PostgreSQL",
            "node",
            "Redis",
        )
    },
    "CPU ms, service + PostgreSQL + node": ("cpu_ms", "service + PostgreSQL + node"),
    "CPU ms, service, steady": ("steady", "cpu_ms", "service"),
    "hello-world/s of the same server": ("hello_per_second",),
    "accepted, % of hello-world": ("percent_of_hello",),
    "CPU ms, service, without waiting": ("alone", "cpu_ms", "service"),
    "creations/s": ("creations_per_second",),
    "accepted/s, times alone": ("times_alone", "accepted_per_second"),
    "accept p50, times alone": ("times_alone", "p50_ms"),
    "accept p99, times alone": ("times_alone", "p99_ms"),
    "CPU ms, client": ("client_cpu_ms_per_call",),
    "others' share of the machine": ("others_share_of_machine",),
}


@dataclass(frozen=True)
class Spread:
    """The median, minimum and maximum of several rounds."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        if self.least == self.most:
            return _short(self.median)
        return f"{_short(self.median)} ({_short(self.least)}-{_short(self.most)})"


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


def ratios(of: Sequence[float], to: Sequence[float]) -> Spread | None:
    """Return the spread of the ratios of paired rounds; None where a divisor is 0 or missing."""
    pairs = list(zip(of, to, strict=False))
    return (
        spread([one / other for one, other in pairs]) if pairs and all(other for _, other in pairs) else None
    )


def values_of(rounds: Sequence[Mapping[str, Any]], path: Sequence[str]) -> list[float]:
    """Return one measure of the valid rounds that have it."""
    return [value for figures in rounds if not figures["wrong"] for value in _at(figures, path)]


def print_round(name: str, commit: str, figures: Mapping[str, Any]) -> None:
    """Print a round and its differences."""
    cpu = figures["cpu_ms"]
    echo(
        f"{name:20} {commit:9} {figures['accepted_per_second']:7.1f} {figures.get('settled_per_second', 0):7.1f}"
        f" {figures['p50_ms']:7.1f} {figures['p99_ms']:7.1f} {cpu['service']:8.2f} {cpu['PostgreSQL']:6.2f}"
        f" {cpu['node']:6.2f} {figures['others_share_of_machine']:7.0%}"
    )
    if figures["refused"] or figures["repeats"]:
        echo(f"    repeated after 429 and 503: {figures['repeats']}; refused: {figures['refused']}")
    for wrong in figures["wrong"]:
        echo(f"    ✗ invalid round: {wrong}")


def print_head() -> None:
    """Print the column titles of `print_round`."""
    echo(f"{'':30}    acc/s   sett/s  p50 ms  p99 ms  service  PostgreSQL node  others")


def print_summary(stacks: Sequence[tuple[str, Mapping[str, Sequence[Mapping[str, Any]]]]]) -> None:
    """Print medians and spreads by scenario; with two stacks (commit, rounds) also their ratios."""
    for name in stacks[-1][1]:
        rounds = [of.get(name, []) for _, of in stacks]
        echo(f"\n{name}: median (least-most) of {' and '.join(str(len(of)) for of in rounds)} rounds")
        echo(
            "  "
            + " " * 38
            + "".join(f"{commit:28}" for commit, _ in stacks)
            + ("ratio" if len(stacks) > 1 else "")
        )
        for measure, path in _MEASURES.items():
            columns = [values_of(of, path) for of in rounds]
            if all(columns):
                echo(
                    f"  {measure:38}"
                    + "".join(f"{spread(values)!s:28}" for values in columns)
                    + _ratio(columns)
                )


def memory_by_component(processes: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, float]]:
    """Return each component's number of processes and the sum of their PSS in megabytes."""
    components: dict[str, tuple[int, float]] = {}
    for process in processes:
        number, megabytes = components.get(process["component"], (0, 0.0))
        components[process["component"]] = number + 1, megabytes + process["pss_mb"]
    return components


def print_memory(commits: Sequence[str], memory: Sequence[Mapping[str, tuple[int, float]]]) -> None:
    """Print the memory of the stacks by component."""
    for commit, of in zip(commits, memory, strict=True):
        parts = [f"{kind} {megabytes:.0f} ({number})" for kind, (number, megabytes) in of.items()]
        echo(f"\nMemory of {commit}, MB in proportion (processes): {', '.join(parts)}")


def keep(folder: Path, kept: Mapping[str, Any]) -> Path:
    """Write the run's file, named by its time."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{kept['at'].replace(':', '').replace('+0000', 'Z')}.json"
    path.write_text(json.dumps(_rounded(kept), indent=1) + "\n")
    return path


def _ratio(columns: Sequence[Sequence[float]]) -> str:
    ratio = ratios(columns[1], columns[0]) if len(columns) == 2 else None
    return f"× {ratio}" if ratio else ""


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.3g}"


def _at(figures: Mapping[str, Any], path: Sequence[str]) -> Iterator[float]:
    value: Any = figures
    for name in path:
        value = value and value.get(name)
    if value is not None:
        yield float(value)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, Mapping):
        return {str(name): _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    return value
