"""`manage.py correct_usage`: count the usage of sponsors' policies again from their calls."""

from typing import Any

from django.core.management.base import BaseCommand

from sponsors.services import usage


class Command(BaseCommand):
    help = "Count the usage of sponsors' policies again from their calls, and correct what differs."
    requires_migrations_checks = True

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{usage.correct()} rows of usage were corrected.")
