"""Django's commands that would give one person at a shell what takes two here."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser


class RefusedCommand(BaseCommand):
    """Takes any arguments, does nothing, and says what to do instead."""

    instead = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ignored", nargs="*")

    def run_from_argv(self, argv: list[str]) -> None:
        super().run_from_argv(argv[:2])

    def handle(self, *args: Any, **options: Any) -> None:
        raise CommandError(self.instead)
