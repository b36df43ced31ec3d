"""Advisory locks: a cheap way to keep two sweeps from doing the same work. Correctness never rests on them."""

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
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        row = cursor.fetchone()
    acquired = bool(row and row[0])
    try:
        yield acquired
    finally:
        if acquired:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
