"""
PgBouncer in front of PostgreSQL in transaction mode, to test that the service depends on no session state.

The program is an installed one, or Debian's packages, downloaded by `apt-get` and unpacked into the data folder.
"""

import os
import shutil
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import psycopg

from devstack.debian import libraries, unpacked
from devstack.files import DATA
from devstack.process_lifetime import unprivileged
from devstack.services.postgres import APPLICATION_ROLE, Postgres
from devstack.services.server import Server

_PACKAGES = ("pgbouncer", "libc-ares2", "libevent-2.1-7")
_PROGRAM = Path("usr/sbin/pgbouncer")
_SETTINGS = """
[databases]
* = host={socket}

[pgbouncer]
pool_mode = transaction
listen_addr =
unix_socket_dir = {directory}
unix_socket_mode = 0700
listen_port = 5432
auth_type = trust
auth_file = {users}
max_client_conn = 1000
default_pool_size = 40
"""


def is_wanted() -> bool:
    """Return whether the environment enables it, as `make test PGBOUNCER=1` does."""
    return os.environ.get("PGBOUNCER", "") not in {"", "0"}


class PgBouncer(Server):
    """PgBouncer in transaction mode; its socket has PostgreSQL's name in another folder."""

    name: ClassVar[str] = "pgbouncer"

    def __init__(self, postgres: Postgres, log_directory: Path) -> None:
        super().__init__(postgres.socket_directory / "pool", log_directory)
        self._postgres = postgres

    def prepare(self) -> None:
        """Write its settings and users; download the program if needed."""
        super().prepare()
        self._program = pgbouncer_program()
        self.environment = {**os.environ, "LD_LIBRARY_PATH": libraries(DATA / "pgbouncer")}
        users = self.directory / "users.txt"
        users.write_text(f'"postgres" ""\n"{APPLICATION_ROLE}" ""\n')
        settings = _SETTINGS.format(
            socket=self._postgres.socket_directory, directory=self.directory, users=users
        )
        (self.directory / "pgbouncer.ini").write_text(settings)

    def command(self) -> list[str]:
        """Return the foreground server."""
        return [str(self._program), str(self.directory / "pgbouncer.ini")]

    def launch(self) -> list[str]:
        """Return the command, run as an account other than root."""
        return unprivileged(super().launch())

    def answers(self) -> bool:
        """Return whether it forwards a statement."""
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def url(self, database: str, *, role: str = APPLICATION_ROLE) -> str:
        """Return the URL of a database through it."""
        return f"postgresql://{role}@/{database}?host={quote(str(self.directory), safe='')}"


def pgbouncer_program() -> Path:
    """Return the installed program, or a downloaded one."""
    installed = shutil.which("pgbouncer")
    return Path(installed) if installed else unpacked("pgbouncer", *_PACKAGES) / _PROGRAM
