"""`manage.py reconcile_credits`: is every credit explained? And the base of all commands that compare the books."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from credits.models import ReconciliationRun
from credits.services import reconciliation


class ReconciliationCommand(BaseCommand):
    requires_migrations_checks = True

    def report(self, run: ReconciliationRun | None) -> None:
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


class Command(ReconciliationCommand):
    help = "Recompute every balance, version chain and held sum from the rows; exit 1 on any difference."

    def handle(self, *args: Any, **options: Any) -> None:
        self.report(reconciliation.reconcile(now=timezone.now()))
