"""`manage.py import_earnings`: import a push network's report of earnings."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from earnings.networks.base import PostbackRefused
from earnings.networks.push_report import COLUMNS, OPTIONAL_COLUMNS
from earnings.services.push import check_report, import_report
from gateway.common import clock
from gateway.common.errors import DomainError
from gateway.staff import approvals
from gateway.staff.models import ApprovalRequest
from users.management.approval_command import ApprovalCommand


class Command(ApprovalCommand):
    help = (
        f"Post the rows of a CSV file with the columns {', '.join(COLUMNS)} and, optionally, "
        f"{', '.join(OPTIONAL_COLUMNS)}. Nothing is posted if any line is invalid; "
        "a row_id that was imported before is skipped. Above the limits of staff, a second person decides in the "
        "admin; then run the command again with the same file."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("network", help="push-report")
        parser.add_argument("file", help="path of the file, or - for standard input")
        parser.add_argument("--dry-run", action="store_true", help="validate the file without posting")

    def handle(self, *args: Any, **options: Any) -> None:
        slug, text, is_dry_run = options["network"], _read(options["file"]), options["dry_run"]
        actor = self.actor(options)
        try:
            result = (
                check_report(slug=slug, text=text)
                if is_dry_run
                else import_report(
                    slug=slug,
                    text=text,
                    actor=actor,
                    reason=options["reason"],
                    now=clock.now(),
                    progress=self._show_progress,
                )
            )
        except (PostbackRefused, ValueError) as error:
            raise CommandError(str(error)) from error
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal
        for number, reason in result.errors:
            self.stderr.write(f"line {number}: {reason}")
        if result.errors:
            raise CommandError(f"{len(result.errors)} invalid lines; nothing was imported")
        for number in result.changed:
            self.stderr.write(f"line {number}: its row_id was imported with other content, which counts")
        for number in result.unnamed:
            self.stderr.write(
                f"line {number}: no user has this user_reference; staff can give it to a person"
            )
        if is_dry_run:
            self.stdout.write(f"{result.new} rows are valid; nothing was imported")
        elif result.approval and result.approval.status == ApprovalRequest.Status.WAITING:
            self.stdout.write(f"{approvals.outcome_of(result.approval, '')} Then import the same file again.")
        else:
            self.stdout.write(f"{result.new} rows imported, {result.repeated} had already been imported")

    def _show_progress(self, done: int, total: int) -> None:
        self.stderr.write(f"{done:,} of {total:,} rows")


def _read(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is not UTF-8") from error
