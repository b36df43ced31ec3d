"""`manage.py verify_ledger`: verify an exported ledger without the database."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from proofs.keys import parse_public_keys, public_keys
from proofs.services.export import ExportVerification, read_roots

_SHOWN = 100


class Command(BaseCommand):
    help = (
        "Verify a file of export_ledger against its signed roots, without the database; exit 1 on any fault."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="file written by export_ledger")
        parser.add_argument(
            "--keys",
            type=Path,
            help="trusted PEM public keys of the service (default: those of the settings)",
        )
        parser.add_argument(
            "--roots",
            type=Path,
            help="a file or directory of roots that were kept elsewhere, to compare with",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        keys = parse_public_keys(options["keys"].read_text()) if options["keys"] else public_keys()
        if not keys:
            raise CommandError("No public key: name a file with --keys.")
        verification = ExportVerification(keys, _kept(options["roots"]) if options["roots"] else None)
        count = 0
        with options["file"].open(encoding="utf-8") as lines:
            for count, fault in enumerate(verification.faults(lines), start=1):
                if count <= _SHOWN:
                    self.stdout.write(fault)
        self.stdout.write(
            f"Verified: {verification.roots} roots, {verification.entries} entries;"
            f" {verification.open_entries} entries are not covered by a root yet."
        )
        if count:
            raise CommandError(f"{count} faults", returncode=1)
        self.stdout.write("No fault.")


def _kept(place: Path) -> dict[int, str]:
    paths = sorted(place.glob("root-*.json")) if place.is_dir() else [place]
    return read_roots(line for path in paths for line in path.read_text(encoding="utf-8").splitlines())
