"""The database of the newest release, in use: it is upgraded while a process of that release accepts calls."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from devstack import releases
from devstack.environment import overriding
from devstack.files import PROJECT
from devstack.services.postgres import APPLICATION_ROLE
from devstack.services.stack import Services
from gateway.common import sql_functions
from lab.rehearsals.interruptions import IN_THE_WAY, SETTINGS, interrupt

_DATABASE = "upgraded"
# Tables of libraries; `migrate` writes some of them.
_OF_LIBRARIES = ("auth_%", "axes_%", "django_%", "users_user\\_%")
# Runs the management commands that it reads, a JSON document a line. Answers each with its error, or an empty text.
_OWNER = """
import json, sys
import django
django.setup()
from django.core.management import call_command
from django.db import connection

for line in sys.stdin:
    error = ""
    try:
        call_command(*json.loads(line), stdout=sys.stderr)
    except Exception as refused:
        error = f"{type(refused).__name__}: {refused}"
        connection.close()
    print(json.dumps(error), flush=True)
"""
_Rows = dict[str, list[Any]]


class OldProcess:
    """Accepts a call as a process of the release does, on one connection that it keeps."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)
        self._connection.prepare_threshold = 0
        self._take, self._store = releases.recorded_call()

    def take(self) -> dict[str, Any]:
        row = self._connection.execute(*self._take).fetchone()
        assert row is not None
        return row

    def store(self) -> str:
        """Store the call; return its hash."""
        self._connection.execute(*self._store)
        return str(json.loads(self._store[1]["calls"])[0]["transaction_hash"])

    def write(self, request_id: str) -> None:
        """Change a call's row, waiting for locks as long as `migrate` may make it wait."""
        self._connection.execute("SET lock_timeout = '10s'")
        self._connection.execute(
            "UPDATE relay_relaytransaction SET request_id = %s WHERE id = 2", [request_id]
        )

    def close(self) -> None:
        self._connection.close()


class Owner:
    """A Django process that owns the tables. It runs several commands, because its start takes seconds."""

    def __init__(self, url: str, settings: Mapping[str, str]) -> None:
        environment = {
            "DJANGO_SETTINGS_MODULE": "devstack.settings",
            "DATABASE_URL": url,
            "DATABASE_APPLICATION_ROLE": APPLICATION_ROLE,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _OWNER],
            env={**os.environ, **environment, **settings},
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def manage(self, *arguments: str) -> str:
        """Run a management command; return its error, or an empty text."""
        self.begin(*arguments)
        return self.outcome()

    def begin(self, *arguments: str) -> None:
        assert self._process.stdin
        print(json.dumps(arguments), file=self._process.stdin, flush=True)

    def outcome(self) -> str:
        """Wait for the command that was begun; return its error, or an empty text."""
        assert self._process.stdout
        return str(json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        self._process.communicate()


class Upgraded:
    """The database, with what an operator does to it."""

    def __init__(self, services: Services) -> None:
        self.url = services.postgres.url(_DATABASE)
        self.application_url = services.postgres.url(_DATABASE, role=APPLICATION_ROLE)
        releases.restore(releases.USED, self.url)

    @contextmanager
    def owner(self, **settings: object) -> Iterator[Owner]:
        """Run a process of its owner, with these settings."""
        owner = Owner(self.url, overriding(**settings))
        try:
            yield owner
        finally:
            owner.end()

    def execute(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            cursor = connection.execute(statement.encode(), params or None)
            return cursor.fetchall() if cursor.description else []

    def rows(self) -> _Rows:
        """Return the rows of our tables, in the order in which they were written."""
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE ALL(%s)"
        query = sql.SQL("SELECT to_jsonb(t) FROM {} AS t ORDER BY ctid")
        with psycopg.connect(self.url) as connection:
            names = [name for (name,) in connection.execute(tables, [list(_OF_LIBRARIES)]).fetchall()]
            return {
                name: [row for (row,) in connection.execute(query.format(sql.Identifier(name))).fetchall()]
                for name in names
            }


@pytest.fixture
def database(services: Services) -> Iterator[Upgraded]:
    """The database of the newest release, with rows in every table."""
    services.postgres.ensure_database(_DATABASE)
    yield Upgraded(services)
    with psycopg.connect(services.postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {_DATABASE} WITH (FORCE)")


@pytest.fixture
def old(database: Upgraded) -> Iterator[OldProcess]:
    process = OldProcess(database.application_url)
    yield process
    process.close()


def test_a_database_with_calls_in_flight_is_upgraded_beside_its_processes(
    database: Upgraded, old: OldProcess
) -> None:
    slot = old.take()
    assert slot["outcome"] == "taken"
    before = database.rows()
    assert all(before.values())

    with database.owner() as owner:
        assert owner.manage("migrate") == ""
        assert _kept(database.rows(), before) == before
        assert owner.manage("check", "--database", "default") == ""
        database.execute("ALTER FUNCTION relay_take_slots SECURITY DEFINER")
        refused = owner.manage("check", "--database", "default")
        assert ("gateway.E001" in refused, "relay_take_slots" in refused) == (True, True)
        database.execute("ALTER FUNCTION relay_take_slots SECURITY INVOKER")
    for name, text in sql_functions.FUNCTIONS.items():
        ((body, may),) = database.execute(
            "SELECT prosrc, has_function_privilege(%s, oid, 'EXECUTE') FROM pg_proc WHERE proname = %s",
            APPLICATION_ROLE,
            name,
        )
        assert (text.split("$$")[1], may) == (body, True)
    # The old process keeps running: it finishes its call, and recognises a repeat.
    transaction_hash = old.store()
    repeated = old.take()
    assert (repeated["outcome"], repeated["transaction_hash"]) == ("repeated", transaction_hash)
    assert _kept(database.rows(), {"relay_attempt": before["relay_attempt"]}) == {
        "relay_attempt": before["relay_attempt"]
    }
    # All calls of before, and that of the old process, have the first price of a credit.
    prices = database.execute("SELECT credit_wei FROM relay_creditprice WHERE is_first")
    assert database.execute("SELECT DISTINCT credit_wei FROM relay_relaytransaction") == prices == [(10**12,)]


def test_each_kind_of_migration_lets_an_old_process_continue_and_can_be_repeated_after_an_interruption(
    database: Upgraded, old: OldProcess
) -> None:
    old.take()
    with database.owner(**SETTINGS) as owner:
        # From here on it runs, so that what is in the way is not there for long.
        assert owner.manage("check") == ""
        for name, statement in IN_THE_WAY.items():
            with psycopg.connect(database.url) as open_transaction:
                open_transaction.execute(statement.encode())
                owner.begin("migrate", "relay", name)
                interrupt(database.url)
                assert owner.outcome().startswith("OperationalError"), name
                owner.begin("migrate", "relay", name)
                old.write(name)
            assert owner.outcome() == "", name
    old.store()
    written = database.rows()["relay_relaytransaction"]
    assert [row["rehearsed"] for row in written] == [True] * (len(written) - 1) + [False]
    assert [row["request_id"] for row in written if row["id"] == 2] == ["rehearsed_4_constraint"]
    (made,) = database.execute(
        "SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = 'relay_rehearsed'::regclass),"
        " (SELECT convalidated FROM pg_constraint WHERE conname = 'rehearsed_has_time')"
    )
    assert made == (True, True)


def _kept(rows: _Rows, before: _Rows) -> _Rows:
    """Return the rows that were there before, without the columns that the upgrade added."""
    return {
        table: [
            {name: value for name, value in row.items() if name in old}
            for row, old in zip(rows[table], olds, strict=False)
        ]
        for table, olds in before.items()
    }
