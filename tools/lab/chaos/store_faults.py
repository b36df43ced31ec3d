"""Faults of PostgreSQL and Redis that leave them running: locked rows, ended sessions, refused writes, foreign keys."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import psycopg
import redis
from psycopg import sql

from devstack.services.postgres import APPLICATION_ROLE
from lab.chaos.stack import Stack

_READ_ONLY_SECONDS, _LOCKED_SECONDS, _REFUSED_SECONDS, _DEMOTED_SECONDS = 60, 60, 60, 1
_TERMINATED, _TERMINATED_EVERY_SECONDS = 100, 0.1
_FOREIGN_TYPE, _REPLACED_EVERY_SECONDS = b"stream", 0.5

Context = AbstractContextManager[None]
_ONE_SESSION = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s ORDER BY random() LIMIT 1
"""


def _owner(stack: Stack) -> "psycopg.Connection[Any]":
    return psycopg.connect(stack.services.database_url, autocommit=True)


@contextmanager
def _read_only(stack: Stack, *, only_open_sessions: bool) -> Iterator[None]:
    """Make every session read-only; with `only_open_sessions`, those that the processes open from now on can write."""
    role = sql.Identifier(APPLICATION_ROLE)
    with _owner(stack) as owner:
        if only_open_sessions:
            owner.execute(sql.SQL("ALTER ROLE {} SET default_transaction_read_only = off").format(role))
        owner.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        owner.execute("SELECT pg_reload_conf()")
        time.sleep(_READ_ONLY_SECONDS)
        owner.execute("ALTER SYSTEM RESET default_transaction_read_only")
        owner.execute("SELECT pg_reload_conf()")
        owner.execute("SET default_transaction_read_only = off")
        owner.execute(sql.SQL("ALTER ROLE {} RESET default_transaction_read_only").format(role))
    yield


@contextmanager
def _locked(row: str, stack: Stack) -> Iterator[None]:
    """Lock a row by hand, with the strongest lock."""
    with _owner(stack) as owner, owner.transaction():
        owner.execute(row)
        time.sleep(_LOCKED_SECONDS)
    yield


@contextmanager
def _terminated(stack: Stack) -> Iterator[None]:
    with _owner(stack) as owner:
        for _ in range(_TERMINATED):
            owner.execute(_ONE_SESSION, [APPLICATION_ROLE])
            time.sleep(_TERMINATED_EVERY_SECONDS)
    yield


@contextmanager
def _redis_is(begin: tuple[str, ...], end: tuple[str, ...], seconds: float, stack: Stack) -> Iterator[None]:
    with redis.Redis.from_url(stack.services.redis_url) as client:
        client.execute_command(*begin)
        time.sleep(seconds)
        client.execute_command(*end)
    yield


@contextmanager
def _wrong_types(stack: Stack) -> Iterator[None]:
    """Replace every key of Redis by one of another type, as another program with the same database would."""
    with redis.Redis.from_url(stack.services.redis_url) as client:
        ends_at = time.monotonic() + _REFUSED_SECONDS
        while time.monotonic() < ends_at:
            for key in client.scan_iter():
                if client.type(key) != _FOREIGN_TYPE:
                    client.pipeline().delete(key).xadd(key, {"foreign": 1}).execute()
            time.sleep(_REPLACED_EVERY_SECONDS)
        client.flushall()
    yield


_DEMOTE, _PROMOTE = ("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")
_FILL, _EMPTY = ("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")

STORE_FAULTS: dict[str, Callable[[Stack], Context]] = {
    "postgres: read-only for 60 s": partial(_read_only, only_open_sessions=False),
    "postgres: open sessions read-only": partial(_read_only, only_open_sessions=True),
    "postgres: account locked for 60 s": partial(
        _locked, "SELECT FROM credits_account ORDER BY version DESC LIMIT 1 FOR UPDATE"
    ),
    "postgres: relayer locked for 60 s": partial(
        _locked, "SELECT FROM relay_relayer ORDER BY next_account_nonce DESC LIMIT 1 FOR UPDATE"
    ),
    "postgres: 100 sessions terminated": _terminated,
    "redis: demoted for a second": partial(_redis_is, _DEMOTE, _PROMOTE, _DEMOTED_SECONDS),
    "redis: read-only for 60 s": partial(_redis_is, _DEMOTE, _PROMOTE, _REFUSED_SECONDS),
    "redis: out of memory for 60 s": partial(_redis_is, _FILL, _EMPTY, _REFUSED_SECONDS),
    "redis: wrong types for 60 s": _wrong_types,
}
