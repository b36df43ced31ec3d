"""`manage.py erase_deleted_accounts`: erase deleted accounts, once or in a loop."""

import signal
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import close_old_connections, connection
from django.utils.timezone import now

from gateway.common.tasks import touch_alive_file
from users.services import deletion

# How often to renew the health check's file, which must be younger than a minute.
_ALIVE_SECONDS = 20
_OWNS_THE_LEDGER = (
    "SELECT pg_has_role(current_user, relowner, 'USAGE') FROM pg_class WHERE oid = 'credits_entry'::regclass"
)


class Command(BaseCommand):
    help = "Erase deleted accounts that have nothing in progress. Needs the table owner's DATABASE_URL."
    requires_migrations_checks = True
    # The eraser has none of the secrets that the checks of other packages require.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--every", type=float, metavar="SECONDS", help="repeat until stopped")

    def handle(self, *args: Any, **options: Any) -> None:
        self._require_owner()
        ending = threading.Event()
        if options["every"] is not None:
            # Without a handler, process 1 of a container ignores the signal.
            signal.signal(signal.SIGTERM, lambda *_: ending.set())
        while not ending.is_set():
            if count := deletion.erase_due(now=now()):
                self.stdout.write(f"{count} accounts were erased.")
            if options["every"] is None:
                return
            self._pause(options["every"], ending)

    def _require_owner(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_OWNS_THE_LEDGER)
            (owns,) = cursor.fetchone()
        if not owns:
            raise CommandError("Only the owner of the tables may erase. Use the DATABASE_URL of migrate.")

    def _pause(self, seconds: float, ending: threading.Event) -> None:
        """Sleep until the next run or the signal to stop, and renew the health check's file meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not ending.is_set():
            touch_alive_file()
            ending.wait(min(left, _ALIVE_SECONDS))
        close_old_connections()
