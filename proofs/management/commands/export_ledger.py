"""`manage.py export_ledger`: write the ledger and its roots as JSON Lines, for an auditor to verify."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from proofs.services.export import ledger_lines


class Command(BaseCommand):
    help = "Write every entry and every signed root to a file, one JSON object to a line."
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="is overwritten")

    def handle(self, *args: Any, **options: Any) -> None:
        with options["file"].open("w", encoding="utf-8") as file:
            count = sum(file.write(f"{line}\n") > 0 for line in ledger_lines())
        self.stdout.write(f"{count} lines written to {options['file']}")
