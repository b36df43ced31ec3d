"""The command that prints a comparison of the books, and exits by what it has found."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from django.core.management.base import BaseCommand, CommandError


class Run(Protocol):
    """A finished run: how much was compared, and what differs as `rule`, `ids`, `have` and `wanted`."""

    @property
    def counts(self) -> Mapping[str, int]: ...

    @property
    def findings(self) -> Sequence[Mapping[str, Any]]: ...


class ReconciliationCommand(BaseCommand):
    """Prints what a comparison has found, and exits by it."""

    requires_migrations_checks = True

    def report(self, run: Run | None) -> None:
        """
        Print what was compared and each difference that the run kept.

        Raises:
            CommandError: something differs (exit status 1), or there is no run, for another is under way (2).
        """
        if run is None:
            raise CommandError("Another reconciliation is under way.", returncode=2)
        for finding in run.findings:
            ids = " ".join(f"{noun}={identifier}" for noun, identifier in finding["ids"].items())
            self.stdout.write(f"{finding['rule']}: {ids}: have {finding['have']}; wanted {finding['wanted']}")
        if left_out := run.counts["findings"] - len(run.findings):
            self.stdout.write(f"and {left_out} more, which are in the log alone.")
        compared = ", ".join(f"{count} {noun}" for noun, count in run.counts.items() if noun != "findings")
        self.stdout.write(f"Compared: {compared or 'nothing'}.")
        if run.counts["findings"]:
            raise CommandError(f"{run.counts['findings']} differences", returncode=1)
        self.stdout.write("No difference.")
