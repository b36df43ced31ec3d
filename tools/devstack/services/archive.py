"""A base backup and WAL archive, to restore a PostgreSQL from."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psycopg

from devstack.process_lifetime import unprivileged
from devstack.services.postgres import BINARIES, Postgres
from devstack.services.server import ServerFailed, wait_until

_ARCHIVED = "SELECT last_archived_wal >= %s FROM pg_stat_archiver"


@dataclass(frozen=True)
class Archive:
    """A folder of WAL segments, and one base backup."""

    directory: Path

    def settings(self, *, at_least_every_seconds: int) -> list[str]:
        """Return the settings with which a server archives here, however little is written."""
        segment = f"{self._segments}/%f"
        return [
            "archive_mode=on",
            f"archive_timeout={at_least_every_seconds}",
            f"archive_command=test ! -f {segment} && cp %p {segment}.part && mv {segment}.part {segment}",
        ]

    def prepare(self) -> None:
        """Create the folders for the server's account."""
        self._segments.mkdir(parents=True)

    def back_up(self, postgres: Postgres) -> None:
        """Copy the running server's data; it keeps serving."""
        where = ["-h", str(postgres.socket_directory), "-U", "postgres", "-D", str(self._base)]
        _run(str(BINARIES / "pg_basebackup"), *where, "--checkpoint=fast", "--no-sync")

    def close_segment(self, postgres: Postgres) -> None:
        """Wait until all commits so far are archived."""
        with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
            segment = connection.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()
            wait_until(
                lambda: connection.execute(_ARCHIVED, segment).fetchone() == (True,),
                "a segment is not archived",
            )

    def restore(self, postgres: Postgres, *, until: str | None = None) -> None:
        """
        Replace a stopped server's data by the base backup, start it, and replay the archive.

        Replay ends with the last archived segment, or at a time such as '2026-11-23 10:00:00+00'.
        """
        shutil.rmtree(postgres.cluster)
        subprocess.run(["cp", "-a", str(self._base), str(postgres.cluster)], check=True)
        with (postgres.cluster / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"restore_command = 'cp {self._segments}/%f %p'\n")
            settings.write("recovery_target_action = 'promote'\n")
            settings.write(f"recovery_target_time = '{until}'\n" if until else "")
        (postgres.cluster / "recovery.signal").touch()
        postgres.start()
        postgres.wait()
        with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
            replaying = "SELECT pg_is_in_recovery()"
            wait_until(
                lambda: connection.execute(replaying).fetchone() == (False,), "the archive is not replayed"
            )

    @property
    def _segments(self) -> Path:
        return self.directory / "wal"

    @property
    def _base(self) -> Path:
        return self.directory / "base"


def _run(*command: str) -> None:
    outcome = subprocess.run(unprivileged(command), capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise ServerFailed(f"{command[0]} failed: {outcome.stderr.strip()}")
