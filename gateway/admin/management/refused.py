"""Refuses commands of Django that would let one person do what requires two."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser


class RefusedCommand(BaseCommand):
    """Accepts any arguments, does nothing, and names the command to use instead."""

    instead = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ignored", nargs="*")

    def run_from_argv(self, argv: list[str]) -> None:
        super().run_from_argv(argv[:2])

    def handle(self, *args: Any, **options: Any) -> None:
        raise CommandError(self.instead)
