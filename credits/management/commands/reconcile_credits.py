"""`manage.py reconcile_credits`: is every credit explained?"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from credits.services.reconcile import count_rows, find_differences


class Command(BaseCommand):
    help = "Recompute every balance, version chain and held sum from the rows; exit 1 on any difference."
    requires_migrations_checks = True

    def handle(self, *args: Any, **options: Any) -> None:
        findings = find_differences()
        for finding in findings:
            self.stdout.write(
                f"account {finding.account_id}: {finding.rule}; row {finding.row_id} "
                f"says {finding.found}, the other rows say {finding.expected}"
            )
        if findings:
            raise CommandError(f"{len(findings)} differences", returncode=1)
        accounts, entries, holds = count_rows()
        self.stdout.write(f"No difference: {accounts} accounts, {entries} entries, {holds} holds checked.")
