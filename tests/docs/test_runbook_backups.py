"""The runbook's backups are taken and restored by its own commands, on a server of the test's own."""

import os
import pwd
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import yaml

from devstack.process_lifetime import unprivileged
from devstack.services.archive import Archive
from devstack.services.postgres import BINARIES, Postgres
from devstack.services.server import wait_until
from devstack.services.template import TEMPLATE, copy_template
from tests.docs.pages import ROOT
from tests.docs.runbook import typed

# The processes may add entries, and not delete any.
_RIGHTS = b"""
SELECT has_table_privilege('gateway_app', 'credits_entry', 'INSERT'),
       has_table_privilege('gateway_app', 'credits_entry', 'DELETE')
"""


@dataclass(frozen=True)
class Host:
    """A host whose folders are elsewhere, and the account of its PostgreSQL is another."""

    folder: Path
    postgres: Postgres

    def run(self, start: str, **replaced: str) -> None:
        """Run the one command of the runbook that begins so, as the container would."""
        (command,) = (one for one in typed() if one.line.startswith(start) and one.service == "postgres")
        program, *words = command.words
        if program == "-ec":
            program, words = "sh", ["-ec", *words]
            replaced |= {"docker": self.postgres.cluster.name, "chown postgres": f"chown {self._account}"}
        else:
            program = str(BINARIES / program)
        replaced |= {"/var/lib/postgresql/18": str(self.postgres.directory), "/backup": str(self.backup)}
        for name, value in replaced.items():
            words = [word.replace(name, value) for word in words]
        source, target = self._redirected(words, "<"), self._redirected(words, ">")
        as_postgres = [program, *words] if program == "sh" else unprivileged([program, *words])
        outcome = subprocess.run(
            as_postgres,
            cwd=self.folder,
            env=os.environ | {"PGHOST": str(self.postgres.socket_directory)},
            input=source.read_bytes() if source else None,
            capture_output=True,
            check=False,
        )
        assert outcome.returncode == 0, outcome.stderr.decode()
        if target:
            target.write_bytes(outcome.stdout)

    @property
    def backup(self) -> Path:
        return self.folder / "backup"

    @property
    def segments(self) -> list[str]:
        return sorted(path.name for path in (self.backup / "wal").iterdir())

    @property
    def _account(self) -> str:
        return pwd.getpwuid(self.postgres.cluster.stat().st_uid).pw_name

    def _redirected(self, words: list[str], sign: str) -> Path | None:
        if sign not in words:
            return None
        *_, name = words[words.index(sign) :]
        del words[words.index(sign) :]
        return self.folder / name


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A server with the tables, which archives as deploy/compose.archive.yaml has it."""
    archived = yaml.safe_load((ROOT / "deploy/compose.archive.yaml").read_text())["services"]["postgres"]
    options = [word.replace("/backup", str(tmp_path / "backup")) for word in archived["command"][2::2]]
    server = Postgres(
        tmp_path / "postgres", tmp_path / "log", durable=False, make_cluster=copy_template, settings=options
    )
    (tmp_path / "backup" / "wal").mkdir(parents=True)
    with server.running():
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE ROLE gateway SUPERUSER LOGIN")
        server.ensure_database(template=TEMPLATE)
        yield Host(tmp_path, server)


def _kept(postgres: Postgres, statement: str = "") -> list[str]:
    """Execute a statement; return the rows that this test has written into one of the service's tables."""
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        if statement:
            connection.execute(statement.encode())
        assert connection.execute(_RIGHTS).fetchone() == (True, False)
        rows = connection.execute(
            "SELECT model FROM django_content_type WHERE app_label = 'kept' ORDER BY id"
        )
        return [name for (name,) in rows]


def _added(postgres: Postgres, name: str) -> list[str]:
    return _kept(postgres, f"INSERT INTO django_content_type (app_label, model) VALUES ('kept', '{name}')")  # noqa: S608


def test_backups_restore_as_the_runbook_describes(host: Host) -> None:
    """A dump restores what was there; a base backup and the log restore what came later, too."""
    _added(host.postgres, "dumped")
    host.run("pg_dump")
    _added(host.postgres, "lost")
    host.run("pg_restore")
    assert _kept(host.postgres) == ["dumped"]

    archive = Archive(host.backup)
    archive.close_segment(host.postgres)
    host.run("pg_basebackup", **{"$(date +%F)": "2026-11-23"})
    _added(host.postgres, "archived")
    archive.close_segment(host.postgres)

    before = host.segments
    (backup,) = (name for name in before if name.endswith(".backup"))
    host.run("pg_archivecleanup", **{"SEGMENT.OFFSET.backup": backup})
    assert host.segments == [name for name in before if name >= backup[:24]] != before

    host.postgres.kill()
    host.run("-ec")
    host.postgres.start()
    host.postgres.wait()
    wait_until(lambda: _is_primary(host.postgres), "the log is not replayed")
    assert _kept(host.postgres) == ["dumped", "archived"]


def _is_primary(postgres: Postgres) -> bool:
    with psycopg.connect(postgres.url()) as connection:
        return connection.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
