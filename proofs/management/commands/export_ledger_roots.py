"""`manage.py export_ledger_roots`: write each signed root to a file in a directory."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from proofs.services.export import root_lines


class Command(BaseCommand):
    help = "Add the roots that the directory lacks; exit 1 if a root it has was changed or deleted since."
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("directory", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        directory: Path = options["directory"]
        directory.mkdir(parents=True, exist_ok=True)
        kept, added, rewritten = {path.name for path in directory.glob("root-*.json")}, 0, []
        for number, line in enumerate(root_lines(), start=1):
            path = directory / f"root-{number:09}.json"
            if path.name not in kept:
                path.write_text(f"{line}\n", encoding="utf-8")
                added += 1
            elif path.read_text(encoding="utf-8") != f"{line}\n":
                rewritten.append(path.name)
            kept.discard(path.name)
        self.stdout.write(f"{added} roots added to {directory}")
        if rewritten or kept:
            gone = ", ".join(sorted(kept)) or "none"
            raise CommandError(
                f"Changed since they were exported: {', '.join(rewritten) or 'none'}; missing now: {gone}"
            )
