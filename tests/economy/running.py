"""Run the machine: how many runs, of how many steps, from which seed."""

import time
from collections import Counter
from typing import Any, ClassVar

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from credits.services.reconciliation import count_rows, find_differences
from devstack.console import echo
from tests.economy.machine import EconomyMachine
from tests.economy.setup import set_up

_TELL_EVERY = 100


class CountedMachine(EconomyMachine):
    """The machine, telling how far it has come."""

    started = 0.0
    runs = 0
    steps = 0
    entries: ClassVar[Counter[str]] = Counter()

    def check_invariants(self, *arguments: Any) -> None:
        """Count a step; Hypothesis asks for the invariants once after each."""
        type(self).steps += 1
        super().check_invariants(*arguments)

    def teardown(self) -> None:
        """Count the run and what it posted."""
        machine = type(self)
        machine.runs += 1
        for subject in getattr(self, "subjects", []):
            machine.entries.update(source for _, source in subject.model.entries)
        if machine.runs % _TELL_EVERY == 0:
            echo(f"  {machine.runs} runs, {machine.steps} steps, {time.monotonic() - machine.started:.0f} s")


def run(*, runs: int, steps: int, seed: int) -> None:
    """Make `runs` runs of `steps` moves, then audit the whole ledger once."""
    EconomyMachine.setup = set_up()
    CountedMachine.started = time.monotonic()
    echo(f"{runs} runs of {steps} steps, seed {seed}")
    run_state_machine_as_test(_seeded(seed), settings=_settings(runs, steps))
    differences = find_differences()
    if differences:
        raise AssertionError(f"{len(differences)} differences: {differences[:5]}")
    _report()


def _seeded(number: int) -> type[CountedMachine]:
    seeded: type[CountedMachine] = seed(number)(CountedMachine)
    return seeded


def _settings(runs: int, steps: int) -> settings:
    return settings(
        max_examples=runs,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def _report() -> None:
    seconds = time.monotonic() - CountedMachine.started
    accounts, entries, holds = count_rows()
    echo(f"✓ {CountedMachine.runs} runs, {CountedMachine.steps} checks of all invariants in {seconds:.0f} s")
    echo(f"  {accounts} accounts, {entries} entries, {holds} holds, no difference between rows and model")
    for source, count in sorted(CountedMachine.entries.items()):
        echo(f"  {count:8} {source}")
