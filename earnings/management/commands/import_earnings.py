"""`manage.py import_earnings`: import a push network's report of who earned what."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from earnings.networks.base import PostbackRefused
from earnings.networks.push_report import COLUMNS, OPTIONAL_COLUMNS
from earnings.services.push import import_report


class Command(BaseCommand):
    help = (
        f"Post the rows of a CSV file with the columns {', '.join(COLUMNS)} and, if wanted, "
        f"{', '.join(OPTIONAL_COLUMNS)}. Nothing is posted where any line is faulty; "
        "a row_id that was imported before is skipped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("network", help="push-report")
        parser.add_argument("file", help="path of the file, or - for standard input")
        parser.add_argument("--dry-run", action="store_true", help="check the whole file and post nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        is_dry_run: bool = options["dry_run"]
        try:
            result = import_report(
                slug=options["network"],
                text=_read(options["file"]),
                is_dry_run=is_dry_run,
                now=timezone.now(),
            )
        except (PostbackRefused, ValueError) as error:
            raise CommandError(str(error)) from error
        for number, reason in result.errors:
            self.stderr.write(f"line {number}: {reason}")
        if result.errors:
            raise CommandError(f"{len(result.errors)} faulty lines; nothing was imported")
        if is_dry_run:
            self.stdout.write(f"{result.new} rows are valid; nothing was imported")
        else:
            self.stdout.write(f"{result.new} rows imported, {result.repeated} had been imported before")


def _read(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is not UTF-8") from error
