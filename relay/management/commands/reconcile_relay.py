"""`manage.py reconcile_relay`: is what the chain took in gas what was captured for it?"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from relay.services import reconcile


class Command(BaseCommand):
    help = "Compare settled calls, holds and receipts with each other; exit 1 on any difference."
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--days",
            type=int,
            default=reconcile.DAYS,
            help="how far back costs are compared, at today's CREDIT_WEI",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        run = reconcile.reconcile(now=timezone.now(), days=options["days"])
        if run is None:
            raise CommandError("Another reconciliation is under way.", returncode=2)
        for found in run.findings:
            named = " ".join(f"{noun}={identifier}" for noun, identifier in found["ids"].items())
            self.stdout.write(f"{found['rule']}: {named}: have {found['have']}; wanted {found['wanted']}")
        compared = ", ".join(f"{count} {noun}" for noun, count in run.counts.items() if noun != "findings")
        self.stdout.write(f"Compared: {compared}.")
        if run.counts["findings"]:
            raise CommandError(f"{run.counts['findings']} differences", returncode=1)
        self.stdout.write("No difference.")
