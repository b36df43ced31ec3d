"""Advisory locks: a cheap way to keep two sweeps from doing the same work. Correctness never depends on them."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def try_advisory_lock(name: str) -> Iterator[bool]:
    """
    Yield whether this session got the PostgreSQL advisory lock of that name, without waiting.

    The lock belongs to the database session, so network calls under it hold no row.
    """
    key = zlib.crc32(name.encode())
    acquired = False
    try:
        acquired = _ask("SELECT pg_try_advisory_lock(%s)", key)
        yield acquired
    finally:
        if acquired:
            _ask("SELECT pg_advisory_unlock(%s)", key)


def _ask(question: str, key: int) -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute(question, [key])
            row = cursor.fetchone()
    except BaseException:
        # A time limit may strike anywhere: the session may hold the lock by now, and workers keep their sessions.
        connection.close()
        raise
    return bool(row and row[0])
