"""The page about a new major version of PostgreSQL: its statements after a logical copy."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from devstack import releases
from devstack.files import PROJECT
from devstack.services.postgres import APPLICATION_ROLE, BINARIES, Postgres
from devstack.services.server import wait_until
from tests.docs.pages import DOCS

_PAGE = (DOCS / "postgresql.md").read_text()
CHECK = ("check", "--deploy", "--database", "default")
_TABLES_LEFT = "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Postgres]:
    """A server with the database of the newest release, and an empty one."""
    server = Postgres(tmp_path / "postgres", tmp_path, durable=False, settings=("wal_level=logical",))
    with server.running():
        server.ensure_application_role()
        for name in ("old", "new"):
            server.ensure_database(name)
        releases.restore(releases.USED, server.url("old"))
        yield server


def run(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def manage(url: str, *arguments: str) -> str:
    """Run a management command as the owner of the tables; return its errors."""
    environment = {
        "DJANGO_SETTINGS_MODULE": "devstack.settings",
        "DATABASE_URL": url,
        "DATABASE_APPLICATION_ROLE": APPLICATION_ROLE,
    }
    outcome = subprocess.run(
        [sys.executable, "-W", "ignore", "manage.py", *arguments],
        cwd=PROJECT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return outcome.stderr if outcome.returncode or "check" in arguments else ""


def test_a_database_that_was_replicated_logically_takes_rows_after_the_statement_of_the_page(
    server: Postgres,
) -> None:
    old, new = server.url("old"), server.url("new")
    assert manage(old, "migrate") == ""
    dumped = subprocess.run(
        [BINARIES / "pg_dump", "--schema-only", old], capture_output=True, check=True, text=True
    )
    subprocess.run(
        [BINARIES / "psql", "-qv", "ON_ERROR_STOP=1", new], input=dumped.stdout, check=True, text=True
    )
    run(old, "CREATE PUBLICATION moved FOR ALL TABLES")
    # A subscription to the same server would wait for itself if it created the slot.
    run(old, "SELECT pg_create_logical_replication_slot('moved', 'pgoutput')")
    place = f"host={server.socket_directory} dbname=old user=postgres"
    run(new, f"CREATE SUBSCRIPTION moved CONNECTION '{place}' PUBLICATION moved WITH (create_slot = false)")
    wait_until(lambda: run(new, _TABLES_LEFT) == [(0,)], "the copy does not end", seconds=300)
    run(new, "DROP SUBSCRIPTION moved")

    assert "gateway.E002" in manage(new, *CHECK)
    (statement,) = re.findall(r"DO \$\$.*?END \$\$", _PAGE, re.DOTALL)
    positions = "SELECT sequencename, last_value FROM pg_sequences ORDER BY 1"
    run(new, statement)
    first = run(new, positions)
    assert manage(new, "migrate") == ""
    assert "gateway.E" not in manage(new, *CHECK)
    run(new, statement)
    assert run(new, positions) == first
