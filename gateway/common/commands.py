"""Commands that compare our books with something, and exit by what they have found."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from django.core.management.base import BaseCommand, CommandError


class Comparison(Protocol):
    """A finished run: how much was compared, and what differs as `rule`, `ids`, `have` and `wanted`."""

    @property
    def counts(self) -> Mapping[str, int]: ...

    @property
    def findings(self) -> Sequence[Mapping[str, Any]]: ...


class ComparingCommand(BaseCommand):
    """A command that prints what a comparison has found."""

    requires_migrations_checks = True

    def report(self, run: Comparison | None) -> None:
        """
        Print what was compared and each difference that the run kept.

        Raises:
            CommandError: something differs (exit status 1), or there is no run, for another is under way (2).
        """
        if run is None:
            raise CommandError("Another reconciliation is under way.", returncode=2)
        for found in run.findings:
            named = " ".join(f"{noun}={identifier}" for noun, identifier in found["ids"].items())
            self.stdout.write(f"{found['rule']}: {named}: have {found['have']}; wanted {found['wanted']}")
        if left_out := run.counts["findings"] - len(run.findings):
            self.stdout.write(f"and {left_out} more, which are in the log alone.")
        compared = ", ".join(f"{count} {noun}" for noun, count in run.counts.items() if noun != "findings")
        self.stdout.write(f"Compared: {compared or 'nothing'}.")
        if run.counts["findings"]:
            raise CommandError(f"{run.counts['findings']} differences", returncode=1)
        self.stdout.write("No difference.")
