"""`manage.py migrate` with a short lock timeout, so that it does not block the service."""

import time
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from psycopg.errors import LockNotAvailable

from gateway.common import db

# The lock timeout, short because all later sessions queue behind one that waits for a table's lock.
LOCK_SECONDS = 1
PAUSE_SECONDS, _TRIES = 5, 24


class Command(migrate.Command):
    """
    Django's command, but a migration that does not get its lock within a second is rolled back and retried.

    A service under load can therefore be upgraded: no request waits longer than that for a migration's lock.
    """

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        """Skip the database checks, because this command may fix the problems that they report."""
        return super().get_check_kwargs(options) | {"databases": []}

    def handle(self, *args: Any, **options: Any) -> None:
        if reason := db.connection_error(options["database"]):
            raise CommandError(reason)
        with connections[options["database"]].cursor() as cursor:
            cursor.execute("SET lock_timeout = %s", [f"{LOCK_SECONDS}s"])
            self._migrate(*args, **options)
            cursor.execute("RESET lock_timeout")

    def _migrate(self, *args: Any, **options: Any) -> None:
        for tries_left in reversed(range(_TRIES)):
            try:
                super().handle(*args, **options)
                return
            except OperationalError as error:
                if not (tries_left and isinstance(error.__cause__, LockNotAvailable)):
                    raise
            self.stderr.write(f"A table is in use. Retrying in {PAUSE_SECONDS} s.")
            time.sleep(PAUSE_SECONDS)
