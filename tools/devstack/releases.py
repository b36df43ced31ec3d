"""
The newest release as a database, on which changes are tested: its tables, its functions and rows of every kind.

`make record-release` writes these files when a release is made (see CONTRIBUTING).
"""

import gzip
import json
import re
import subprocess
from typing import Any

import psycopg

from devstack.files import PROJECT
from devstack.services.postgres import BINARIES

_FOLDER = PROJECT / "tests" / "data" / "release"
# What a new database has, and the same with rows in every table and calls in flight.
NEW, USED = "new", "used"
_CALL = _FOLDER / "call.json"
# Commands of psql, which a driver does not know.
_COMMANDS = re.compile(r"^\\.*\n", re.MULTILINE)


def record(name: str, url: str) -> None:
    """Write the dump of a database."""
    command = [str(BINARIES / "pg_dump"), "--schema=public", "--no-owner", "--inserts", "--dbname", url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    _FOLDER.mkdir(exist_ok=True)
    # The schema exists in a new database.
    text = _COMMANDS.sub("", text).replace("CREATE SCHEMA public;\n", "")
    (_FOLDER / f"{name}.sql.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def restore(name: str, url: str) -> None:
    """Make the tables and rows of a dump in an empty database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(gzip.decompress((_FOLDER / f"{name}.sql.gz").read_bytes()))


def record_call(statements: list[tuple[str, dict[str, Any]]]) -> None:
    """Write the statements with which a process of the release accepts a call on top of the used database."""
    _CALL.write_text(json.dumps(statements, indent=1, default=str) + "\n")


def recorded_call() -> list[tuple[str, dict[str, Any]]]:
    """Return the statements that `record_call` wrote."""
    return [(statement, params) for statement, params in json.loads(_CALL.read_text())]
