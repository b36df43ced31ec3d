"""`python -m lab bench`: rounds of load on this checkout's stack, optionally alternating with another commit's."""

import argparse
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from devstack.console import echo
from lab.bench.report import keep, memory_by_component, print_head, print_memory, print_round, print_summary
from lab.bench.scenarios import SHORT, Scenario, Site, Size, in_turns, scenarios_of, site_of
from lab.bench.stack import Stack, checkout_of, running_stack, this_checkout

_WARM_UP_CALLS, REST_SECONDS = 60, 5.0


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    scenarios: Sequence[str] = ("many-8",)
    size: Size = Size()  # noqa: RUF009 - it is frozen
    rounds: int = 1
    against: str | None = None
    keys: Sequence[str] = ("local",)
    environment: Path | None = None
    results: Path | None = None


def bench(arguments: argparse.Namespace) -> int:
    """Run with the options of the command line."""
    names = arguments.scenarios or [f"many-{clients}" for clients in arguments.clients] or SHORT
    size = Size(arguments.seconds, arguments.calls, arguments.rate, arguments.targets)
    return run(
        Options(
            names,
            size,
            arguments.rounds,
            arguments.against,
            arguments.keys,
            arguments.environment,
            arguments.results,
        )
    )


def run(options: Options) -> int:
    """Measure, print and save; return 1 if a round was invalid."""
    scenarios, started = scenarios_of(options.scenarios), datetime.now(UTC)
    with _sites(options) as sites:
        rest = [_at_rest(site.stack) for site in sites]
        print_head()
        for site in sites:
            print_round("warm-up", site.stack.checkout.title, site.warm_up(_WARM_UP_CALLS))
        for group in in_turns(scenarios):
            for _ in range(1 if group[0].happens_once else options.rounds):
                for scenario, site in product(group, sites):
                    _measure(scenario, site)
        memory = [site.stack.meter.memory() for site in sites]
    commits = [site.stack.checkout.title for site in sites]
    print_summary([(site.stack.checkout.title, site.rounds) for site in sites])
    print_memory(commits, [memory_by_component(of) for of in memory])
    if options.results is not None:
        stacks = [
            {"commit": commit, "cpu_ms_per_second_at_rest": idle, "memory": of, "rounds": site.rounds}
            for commit, idle, of, site in zip(commits, rest, memory, sites, strict=True)
        ]
        echo(f"Written to {keep(options.results, _described(options, started) | {'stacks': stacks})}")
    return int(any(figures["wrong"] for site in sites for of in site.rounds.values() for figures in of))


def _measure(scenario: Scenario, site: Site) -> None:
    site.records.analyze()
    figures = scenario.measure(site)
    site.rounds.setdefault(scenario.name, []).append(figures)
    print_round(scenario.name, site.stack.checkout.title, figures)


@contextmanager
def _sites(options: Options) -> Iterator[list[Site]]:
    """Start the other commit's stack, if any, then this one's for each place of the keys."""
    with ExitStack() as running:
        checkouts = [this_checkout(keys) for keys in options.keys]
        if options.against:
            other = checkout_of(options.against, environment=options.environment)
            checkouts.insert(0, running.enter_context(other))
        stacks = [running.enter_context(running_stack(checkout)) for checkout in checkouts]
        yield [running.enter_context(site_of(stack, options.size)) for stack in stacks]


def _at_rest(stack: Stack) -> dict[str, float]:
    """Return the idle stack's CPU milliseconds per second."""
    before = stack.meter.read()
    time.sleep(REST_SECONDS)
    used = stack.meter.read().since(before)
    return {kind: seconds / used.at * 1e3 for kind, seconds in used.seconds.items()}


def _described(options: Options, started: datetime) -> dict[str, Any]:
    size = {name: getattr(options.size, name) for name in ("seconds", "calls", "rate", "targets")}
    return {
        "at": started.isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "size": size,
    }
