"""
Leases: one of several processes does a piece of work, until it releases the lease or the lease expires.

A lease is a row with an owner, an expiry by the database's clock and a fencing number. It needs no session, so it
works across hosts and behind a pooler that shares sessions. A holder that stalls until its lease expires may continue
without knowing that another process holds the lease. Each transaction of `fenced` work therefore first locks the
lease's row and checks the number. It fails if another holder has taken over, and no other holder can take over before
it ends, so that of two holders only the later one writes.
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
from gateway.common.statements import Statements

# Another process can replace a killed holder after this time. A live holder renews its lease three times as often.
LEASE_SECONDS = 30.0


class _Sql(Statements, file=__file__):
    take: str
    renew: str


class LeaseLost(Exception):
    """Another process has taken over the work; the argument is the name of the lease."""


class Lease:
    """One holder's lease on one piece of work. `owner` names the holder and stays the same when it restarts."""

    def __init__(self, name: str, *, owner: str, seconds: float) -> None:
        self.name, self.owner, self.seconds = name, owner, seconds
        self._fence = 0

    def take(self) -> bool:
        """Take the lease if it is free, expired or held by this owner; return whether this holder has it now."""
        row = db.first_row(_Sql.take, self._params())
        self._fence = row[0] if row else 0
        return row is not None

    def renew(self) -> bool:
        """Extend the lease; return False if another holder has taken it since, even if only for a while."""
        return db.first_row(_Sql.renew, self._params()) is not None

    def release(self) -> None:
        """Free the lease, so that another holder can take it at once."""
        db.first_row(_RELEASE, self._params())

    @contextmanager
    def fenced(self) -> Iterator[None]:
        """
        Allow this thread's writes in the block only while this holder has the lease.

        Each transaction checks the lease first. A writing statement outside a transaction gets one; a function of the
        database that writes must be called in a transaction.

        Raises:
            LeaseLost: from the first transaction that begins after another holder has taken over.
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
        # On the driver's connection, because Django's would call the wrapper of `fenced` again.
        with connection.wrap_database_errors:
            row = connection.connection.execute(_CONFIRM, self._params()).fetchone()
        if row is None:
            raise LeaseLost(self.name)

    def _params(self) -> dict[str, Any]:
        return {"name": self.name, "owner": self.owner, "seconds": self.seconds, "fence": self._fence}


@contextmanager
def try_lease(name: str) -> Iterator[bool]:
    """
    Try once to take the lease of this name and yield whether that worked; a lease is renewed until the block ends.

    Raises:
        LeaseLost: the block tried to write after another holder had taken over.
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
    """A thread that renews a lease while another one works, on its own connection, opened by the first renewal."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(name=f"lease-{lease.name}", daemon=True)
        self._lease = lease
        self._over = threading.Event()

    def run(self) -> None:
        """Renew until the work has ended or another holder has taken over."""
        try:
            while not self._over.wait(self._lease.seconds / 3) and self._renewed():
                pass
        finally:
            connection.close()

    def end(self) -> None:
        """Stop renewing; return when a renewal in progress has ended."""
        self._over.set()
        self.join()

    def _renewed(self) -> bool:
        try:
            return self._lease.renew()
        except (OperationalError, InterfaceError):
            # The work cannot reach the database either. The next renewal may still be in time.
            connection.close()
            return True


# Matches anywhere in the text, even after WITH. A false match only costs a read-only statement a transaction.
_WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b")

_RELEASE = "DELETE FROM gateway_common_lease WHERE name = %(name)s AND fence = %(fence)s RETURNING fence"

_CONFIRM = "SELECT FROM gateway_common_lease WHERE name = %(name)s AND fence = %(fence)s FOR KEY SHARE"
