"""`manage.py verify_draws DATE`: recompute every draw of a day from its seed."""

from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from checkin.errors import DayNotRevealed
from checkin.services import seeds
from checkin.services.verification import verify_day
from gateway.common import clock


class Command(BaseCommand):
    help = (
        "Recompute every draw of a day whose seed is public, and compare its effect. Exit 1 on any difference, or "
        "if the seed is overdue; exit 2 if the day cannot be verified (yet)."
    )
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("day", type=date.fromisoformat, help="a UTC date, as 2026-11-21")

    def handle(self, *args: Any, **options: Any) -> None:
        day: date = options["day"]
        try:
            verification = verify_day(day)
        except DayNotRevealed as error:
            is_late = seeds.is_overdue(day, now=clock.now())
            raise CommandError(error.detail, returncode=1 if is_late else 2) from error
        for difference in verification.differences:
            of = "the day" if difference.check_in_id is None else f"check-in {difference.check_in_id}"
            self.stdout.write(
                f"{of}: {difference.what} is {difference.stored}, recomputed {difference.recomputed}"
            )
        if verification.differences:
            raise CommandError(f"{len(verification.differences)} differences", returncode=1)
        self.stdout.write(f"No difference: {verification.check_ins} draws of {day} recomputed.")
