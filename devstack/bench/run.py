"""`python -m devstack bench`: rounds of load on this checkout's stack, or in turn on another commit's too."""

import argparse
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from devstack.bench.calls import Wallets, get
from devstack.bench.hello import running_hello
from devstack.bench.load import Load, send
from devstack.bench.records import Records
from devstack.bench.report import WARM_UP, keep, say_head, say_round, say_summary
from devstack.bench.rounds import relay_round
from devstack.bench.stack import Stack, checkout_of, running_stack, this_checkout
from devstack.console import say

_WARM_UP_CALLS, _HELLO_SECONDS, _CALLS_PER_SECOND = 60, 3.0, 500


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    clients: Sequence[int] = (8,)
    seconds: float = 12
    calls: int | None = None
    rounds: int = 1
    rate: float = 0
    targets: int = 4
    against: str | None = None
    environment: Path | None = None
    results: Path | None = None


@dataclass
class Measured:
    """A stack with wallets, its records, and the rounds that were measured on it."""

    stack: Stack
    wallets: Wallets
    records: Records
    rounds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def measure(self, name: str, load: Load) -> None:
        """Make one round and keep its figures; one that does not add up is reported as failed."""
        figures = relay_round(self.stack, self.records, load, thoroughly=True).figures()
        self.rounds.setdefault(name, []).append(figures)
        say_round(name, self.stack.checkout.commit, figures)


def bench(arguments: argparse.Namespace) -> int:
    """Run with the options of the command line."""
    names = [name.name for name in fields(Options)]
    return run(Options(**{name: getattr(arguments, name) for name in names}))


def run(options: Options) -> int:
    """Measure, print, keep; return 1 where a round failed."""
    with _benches(options) as benches:
        hello = {bench.stack.name: _hello(bench.stack, options.clients) for bench in benches}
        say_head()
        for bench in benches:
            bench.measure(
                WARM_UP, Load(bench.wallets.many_profiles(_WARM_UP_CALLS), max(options.clients), 60)
            )
        for clients in options.clients:
            for _ in range(options.rounds):
                for bench in benches:
                    lanes = bench.wallets.many_profiles(_number(options))
                    load = Load(lanes, clients, options.seconds, options.rate, keeps_bodies=False)
                    bench.measure(f"many profiles, {clients} clients", load)
        memory = {bench.stack.name: bench.stack.meter.memory() for bench in benches}
    kept = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "options": {name: getattr(options, name) for name in ("seconds", "calls", "rate", "targets")},
        "hello_per_second": hello,
        "stacks": {
            bench.stack.name: {"commit": bench.stack.checkout.commit, "rounds": bench.rounds}
            for bench in benches
        },
        "memory": memory,
    }
    say_summary([(bench.stack.checkout.commit, bench.rounds) for bench in benches])
    say(f"\nHello-world of the same server, requests/s by clients: {hello}")
    if options.results is not None:
        say(f"Written to {keep(options.results, kept)}")
    failed = sum(
        bool(figures["wrong"]) for bench in benches for each in bench.rounds.values() for figures in each
    )
    return 1 if failed else 0


@contextmanager
def _benches(options: Options) -> Iterator[list[Measured]]:
    with ExitStack() as open_:
        checkouts = [this_checkout()]
        if options.against:
            other = checkout_of(options.against, environment=options.environment)
            checkouts.insert(0, open_.enter_context(other))
        benches = []
        for checkout in checkouts:
            stack = open_.enter_context(running_stack(checkout))
            records = Records(stack)
            open_.callback(records.close)
            benches.append(Measured(stack, Wallets(stack, options.targets), records))
        yield benches


def _number(options: Options) -> int:
    return options.calls or int((options.rate or _CALLS_PER_SECOND) * options.seconds) + 1


def _hello(stack: Stack, clients: Sequence[int]) -> dict[int, float]:
    rates = {}
    with tempfile.TemporaryDirectory(prefix="hello-") as folder, running_hello(Path(folder), stack) as server:
        for number in clients:
            request = get(server.url, "/", None)
            load = Load([[request]], number, _HELLO_SECONDS, cycles=True)
            rates[number] = float(send(server.url, load).figures()["accepted_per_second"])  # type: ignore[arg-type]
    return rates
