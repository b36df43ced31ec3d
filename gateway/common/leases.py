"""
Leases: of several processes one does a piece of work, until it ends, lets go or is not heard of any more.

A lease is a row with an owner, an expiry by the database's clock and a fencing number. It needs no session, so it
holds across hosts and behind a pooler that shares sessions. A holder that stood still until the lease expired may go on
without knowing: while work is `fenced`, each of its transactions begins with a look at the number, and keeps the row
from changing hands until it ends. So of two holders only the later one writes.
"""

import os
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import InterfaceError, OperationalError, connection, transaction
from psycopg.pq import TransactionStatus

from gateway.common import db

# A holder that was killed is replaced after so long; a living one renews three times as often.
LEASE_SECONDS = 30.0


class Lease:
    """One holder's claim to one piece of work. `owner` names the holder, also after its restart."""

    def __init__(self, name: str, *, owner: str, seconds: float) -> None:
        self.name, self.owner, self.seconds = name, owner, seconds
        self._fence = 0

    def take(self) -> bool:
        """Take the lease where it is free, expired or of this owner; return whether this holder has it now."""
        row = db.first_row(_TAKE, self._params())
        self._fence = row[0] if row else 0
        return row is not None

    def renew(self) -> bool:
        """Have the lease expire later; return False where another holder has it, or had it since."""
        return db.first_row(_RENEW, self._params()) is not None

    def release(self) -> None:
        """Let another holder take over at once."""
        db.first_row(_RELEASE, self._params())

    @contextmanager
    def fenced(self) -> Iterator[None]:
        """
        Let this thread write in the block only while this holder has the lease.

        A statement that writes by itself gets a transaction; functions of the database that write are called in one.

        Raises:
            LeaseLost: out of the first transaction that begins after another holder has taken over.
        """
        with connection.execute_wrapper(self._confirmed_first):
            yield

    def _confirmed_first(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        database = context["connection"]
        if database.connection.info.transaction_status == TransactionStatus.IDLE:
            if database.in_atomic_block:
                self._confirm()
            elif _WRITES.search(str(sql)):
                with transaction.atomic():
                    self._confirm()
                    return execute(sql, params, many, context)
        return execute(sql, params, many, context)

    def _confirm(self) -> None:
        # On the driver's connection: Django's would ask this method first.
        with connection.wrap_database_errors:
            row = connection.connection.execute(_CONFIRM, self._params()).fetchone()
        if row is None:
            raise db.LeaseLost(self.name)

    def _params(self) -> dict[str, Any]:
        return {"name": self.name, "owner": self.owner, "seconds": self.seconds, "fence": self._fence}


@contextmanager
def try_lease(name: str) -> Iterator[bool]:
    """
    Yield whether this thread got the lease of that name, without waiting; it is renewed until the block ends.

    Raises:
        LeaseLost: the block wrote after another holder had taken over.
    """
    owner = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(8)}"
    lease = Lease(name, owner=owner, seconds=LEASE_SECONDS)
    if not lease.take():
        yield False
        return
    renewals = _Renewals(lease)
    renewals.start()
    try:
        with lease.fenced():
            yield True
    finally:
        renewals.end()
        lease.release()


class _Renewals(threading.Thread):
    """Renews a lease while another thread works, with a session of its own that is opened when the first is due."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(name=f"lease-{lease.name}", daemon=True)
        self._lease = lease
        self._over = threading.Event()

    def run(self) -> None:
        """Renew until the work is over or another holder has taken over."""
        try:
            while not self._over.wait(self._lease.seconds / 3) and self._renewed():
                pass
        finally:
            connection.close()

    def end(self) -> None:
        """Return once no renewal is under way."""
        self._over.set()
        self.join()

    def _renewed(self) -> bool:
        try:
            return self._lease.renew()
        except (OperationalError, InterfaceError):
            # The database is away for the work as well; the next renewal may be in time.
            connection.close()
            return True


_WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b")

# A process that only waits for the lease locks no row: it would wait for the holder's transactions.
_TAKE = """
INSERT INTO gateway_common_lease AS held (name, owner, expires_at)
SELECT %(name)s::text, %(owner)s::text, statement_timestamp() + %(seconds)s * interval '1 second'
WHERE NOT EXISTS (
    SELECT FROM gateway_common_lease
    WHERE name = %(name)s::text AND owner <> %(owner)s::text AND expires_at > statement_timestamp()
)
ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, owner = excluded.owner, expires_at = excluded.expires_at
WHERE held.owner = excluded.owner OR held.expires_at <= statement_timestamp()
RETURNING fence
"""

# The number stays, so this does not wait for the holder's own transactions.
_RENEW = """
UPDATE gateway_common_lease SET expires_at = statement_timestamp() + %(seconds)s * interval '1 second'
WHERE name = %(name)s AND fence = %(fence)s
RETURNING fence
"""

_RELEASE = "DELETE FROM gateway_common_lease WHERE name = %(name)s AND fence = %(fence)s RETURNING fence"

_CONFIRM = "SELECT FROM gateway_common_lease WHERE name = %(name)s AND fence = %(fence)s FOR KEY SHARE"
