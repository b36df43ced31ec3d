"""`manage.py reconcile_credits`: recompute the ledger. Also the base of all reconciliation commands."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from credits.models import ReconciliationRun
from credits.services import causes, reconciliation
from gateway.common import clock


class ReconciliationCommand(BaseCommand):
    requires_migrations_checks = True

    def report(self, run: ReconciliationRun | None) -> None:
        """
        Print the counts and each stored difference of the run.

        Raises:
            CommandError: there are differences (exit status 1), or another run is in progress (2).
        """
        if run is None:
            raise CommandError("Another reconciliation is in progress.", returncode=2)
        for finding in run.findings:
            ids = " ".join(f"{noun}={identifier}" for noun, identifier in finding["ids"].items())
            self.stdout.write(f"{finding['rule']}: {ids}: have {finding['have']}; wanted {finding['wanted']}")
        if left_out := run.counts["findings"] - len(run.findings):
            self.stdout.write(f"and {left_out} more, which are in the log only.")
        compared = ", ".join(f"{count} {noun}" for noun, count in run.counts.items() if noun != "findings")
        self.stdout.write(f"Compared: {compared or 'nothing'}.")
        if run.counts["findings"]:
            raise CommandError(f"{run.counts['findings']} differences", returncode=1)
        self.stdout.write("No difference.")


class Command(ReconciliationCommand):
    help = (
        "Recompute every balance, version chain and held sum from the rows, or with --causes compare every entry "
        "with the row that caused it; exit 1 on any difference."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--causes", action="store_true", help="compare entries with their causes")

    def handle(self, *args: Any, **options: Any) -> None:
        compare = causes.reconcile if options["causes"] else reconciliation.reconcile
        self.report(compare(now=clock.now()))
