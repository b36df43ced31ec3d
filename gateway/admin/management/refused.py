"""Refused commands of Django, which would let one person do what needs two."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser


class RefusedCommand(BaseCommand):
    """Accepts any arguments, does nothing, and prints the alternative."""

    instead = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ignored", nargs="*")

    def run_from_argv(self, argv: list[str]) -> None:
        super().run_from_argv(argv[:2])

    def handle(self, *args: Any, **options: Any) -> None:
        raise CommandError(self.instead)
