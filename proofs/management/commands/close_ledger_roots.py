"""`manage.py close_ledger_roots`: close a signed root over the newest entries now."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from proofs.services.roots import WritersBusy, close_roots


class Command(BaseCommand):
    help = "Close signed roots over all entries that no root covers yet, without waiting for beat."
    requires_migrations_checks = True

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            closed = close_roots()
        except WritersBusy as busy:
            raise CommandError(str(busy)) from busy
        for root in closed:
            self.stdout.write(str(root))
        self.stdout.write(f"{len(closed)} roots closed.")
