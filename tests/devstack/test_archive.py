"""A server is restored from its base backup and what it has archived since."""

from pathlib import Path

import psycopg
import yaml

from devstack.files import PROJECT
from devstack.services.archive import Archive
from devstack.services.postgres import Postgres
from devstack.services.template import copy_template


def test_a_restored_server_has_everything_up_to_the_last_archived_segment(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    archive.prepare()
    settings = archive.settings(at_least_every_seconds=60)
    postgres = Postgres(
        tmp_path / "postgres", tmp_path / "log", durable=False, make_cluster=copy_template, settings=settings
    )
    with postgres.running():
        _execute(postgres, "CREATE TABLE kept (name text)", "INSERT INTO kept VALUES ('in the backup')")
        archive.back_up(postgres)
        _execute(postgres, "INSERT INTO kept VALUES ('archived')")
        archive.close_segment(postgres)
        _execute(postgres, "INSERT INTO kept VALUES ('in no archive')")
        postgres.kill()
        archive.restore(postgres)
        assert _rows(postgres) == ["in the backup", "archived"]


def test_it_archives_as_a_deployment_does() -> None:
    deployed = yaml.safe_load((PROJECT / "deploy/compose.archive.yaml").read_text())
    (command,) = (word for word in deployed["services"]["postgres"]["command"] if "archive_command" in word)

    settings = Archive(Path("/backup")).settings(at_least_every_seconds=60)

    assert command in settings


def _execute(postgres: Postgres, *statements: str) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _rows(postgres: Postgres) -> list[str]:
    with psycopg.connect(postgres.url("postgres")) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM kept")]
