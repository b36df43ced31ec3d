"""`manage.py check` with a single line of output if PostgreSQL does not respond."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import check

from gateway.common import db


class Command(check.Command):
    """Django's command; with `--database` it first connects, because each check would wait for the database."""

    def handle(self, *app_labels: Any, **options: Any) -> None:
        for alias in options["databases"] or ():
            if reason := db.connection_error(alias):
                raise CommandError(reason)
        super().handle(*app_labels, **options)
