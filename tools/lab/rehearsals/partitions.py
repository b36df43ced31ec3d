"""
`python -m lab partition-rehearsal`: partition a growing table by month while it is in use.

The existing table becomes the first partition, so no row moves. A unique index of a partitioned table must contain the
partition key, so values that are unique across partitions move to a separate table, and no foreign key can reference a
row.
"""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from psycopg.errors import InvalidColumnReference, LockNotAvailable, UniqueViolation
from psycopg.rows import scalar_row

from devstack.console import echo, step
from devstack.services.postgres import Postgres
from devstack.services.server import wait_until
from devstack.services.template import TEMPLATE, copy_template
from lab.rehearsals import divisions
from lab.rehearsals.divided_attempts import ATTEMPTS
from lab.rehearsals.divided_entries import ENTRIES
from lab.rehearsals.divisions import Division

DIVISIONS = {"entries": ENTRIES, "attempts": ATTEMPTS}
_SETTINGS = ("max_wal_size=4GB", "jit=off")
_WRITE_EVERY_SECONDS, _NUMBERS, _TRIES, _REPEATS = 0.02, 1000, 20, 5
Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class Options:
    """The table and its number of rows."""

    table: str
    rows: int


def run(options: Options) -> int:
    """Partition the table; print the time of each step, and the cost of usual statements before and after."""
    with tempfile.TemporaryDirectory(prefix="partitions-") as folder:
        server = Postgres(Path(folder), Path(folder) / "log", make_cluster=copy_template, settings=_SETTINGS)
        with server.running():
            server.ensure_database(template=TEMPLATE)
            with psycopg.connect(server.url(), autocommit=True, row_factory=scalar_row) as connection:
                return rehearse(connection, server.url(), DIVISIONS[options.table], options.rows)


def rehearse(connection: Connection, url: str, division: Division, rows: int) -> int:
    """Partition the table in this database; return 1 if a check fails afterwards."""
    with step(f"{rows:,} rows of {division.table}"):
        for statement in division.fill:
            connection.execute(statement.encode(), {"rows": rows})
    table = _Divided(connection, division)
    size = connection.execute(table.sql(divisions.SIZE)).fetchone()
    before = _plans(connection, {**division.writes, **division.reads}, rows)
    writes = Writes(url, division)
    with writes.going_on():
        writes.wait_for_some()
        took = dict(table.divide())
        writes.wait_for_some()
    connection.execute(table.sql("ANALYZE {table}"))
    after = _plans(connection, {**division.writes_divided, **division.reads}, rows)
    wrong = list(table.wrong(rows))
    echo(f"\nThe table with its indexes has {size}. {writes}\n\n| step | time |\n|---|---:|")
    echo("\n".join(f"| {label} | {seconds:.2f} s |" for label, seconds in took.items()))
    echo("\n| statement | before | after |\n|---|---|---|")
    echo("\n".join(f"| {label} | {before[label]} | {after[label]} |" for label in before))
    echo(
        "\n".join(f"✗ {label}" for label in wrong)
        or "✓ no row is lost, and keys are unique across all months"
    )
    return int(bool(wrong))


class Writes:
    """Writes at a steady rate during the work, and the duration of each statement."""

    def __init__(self, url: str, division: Division) -> None:
        self._url = url
        self._division = division
        self._ended = threading.Event()
        self._took: list[float] = []
        self._failure: BaseException | None = None

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Write during the block; raise the error of a failed statement."""
        thread = threading.Thread(target=self._write_until_ended)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
        if self._failure:
            raise self._failure

    def wait_for_some(self) -> None:
        """Wait until another statement was written, or writing has failed."""
        enough = len(self._took) + 25
        wait_until(lambda: len(self._took) >= enough or self._failure is not None, "nothing is written")

    def _write_until_ended(self) -> None:
        try:
            with psycopg.connect(self._url, autocommit=True, row_factory=scalar_row) as connection:
                while not self._ended.wait(_WRITE_EVERY_SECONDS):
                    self._write(connection)
        except psycopg.Error as error:
            self._failure = error

    def _write(self, connection: Connection) -> None:
        written = len(self._took)
        values = {"number": written % _NUMBERS + 1, "key": f"meanwhile:{written}"}
        for label in self._division.writes:
            began = time.monotonic()
            values["id"] = self._execute(connection, label, values)
            self._took.append(time.monotonic() - began)

    def _execute(self, connection: Connection, label: str, values: Mapping[str, object]) -> Any:
        """Write with the service's statements, and after the swap with the new ones."""
        try:
            return connection.execute(self._division.writes[label].encode(), values).fetchone()
        except InvalidColumnReference:
            return connection.execute(self._division.writes_divided[label].encode(), values).fetchone()

    def __str__(self) -> str:
        slowest = 1000 * max(self._took)
        return f"{len(self._took):,} statements wrote during the work; the slowest took {slowest:.0f} ms."


class _Divided:
    """The table, before and after partitioning."""

    def __init__(self, connection: Connection, division: Division) -> None:
        self._connection = connection
        self._division = division
        border = connection.execute(divisions.BORDER.encode()).fetchone()
        self._names = {
            "table": division.table,
            "locked": division.locked,
            "handed_over": division.handed_over,
            "border": border,
        }

    def sql(self, statement: str) -> bytes:
        return statement.format(**self._names).encode()

    def divide(self) -> Iterator[tuple[str, float]]:
        """Partition the table; yield each step with its seconds."""
        self._connection.execute(b"SET lock_timeout = '1s'")
        for label, script in {**self._division.guard, **divisions.BESIDE_THE_SERVICE}.items():
            yield label, _timed(partial(self._execute, script))
        kept = [line for query in divisions.TAKEN_OVER for line in self._lines(query)]
        yield "an empty partitioned table with the same indexes", _timed(partial(self._execute, kept))
        references = self._lines(divisions.REFERENCES)
        echo("\n".join(f"  · {line}" for line in references))
        swap = [divisions.LOCK, *references, *self._lines(divisions.ROW_TRIGGERS), *self._division.swap]
        yield "swap: the one exclusive lock", _timed(partial(self._execute_at_once, swap))
        yield "twelve months ahead", _timed(self._add_months)
        self._execute(self._lines(divisions.STATEMENT_TRIGGERS))

    def _add_months(self) -> None:
        for month in divisions.MONTHS:
            self._execute_at_once([divisions.LOCK, month])

    def wrong(self, rows: int) -> Iterator[str]:
        """Yield the failed checks."""
        for label, check in {**divisions.CHECKS, **self._division.checks}.items():
            if not self._connection.execute(self.sql(check)).fetchone():
                yield label
        for label, repeat in self._division.repeats.items():
            if self._succeeds(repeat, {"number": 1, "key": "again", "old": "rehearsal:0", "id": rows // 2}):
                yield label

    def _succeeds(self, repeat: str, values: Mapping[str, object]) -> bool:
        try:
            with self._connection.transaction(force_rollback=True):
                return self._connection.execute(repeat.encode(), values).fetchone() is not None
        except UniqueViolation:
            return False

    def _lines(self, query: str) -> list[str]:
        return list(self._connection.execute(self.sql(query)))

    def _execute(self, script: Sequence[str]) -> None:
        for statement in script:
            _until_locked(partial(self._connection.execute, self.sql(statement)))

    def _execute_at_once(self, script: Sequence[str]) -> None:
        def attempt() -> None:
            with self._connection.transaction():
                self._connection.execute(b"SET LOCAL lock_timeout = '200ms'")
                for statement in script:
                    self._connection.execute(self.sql(statement))

        _until_locked(attempt)


def _until_locked(work: Callable[[], object]) -> None:
    """Retry after a lock timeout, so that other sessions never queue longer than that."""
    for _ in range(_TRIES - 1):
        try:
            work()
        except LockNotAvailable:
            continue
        return
    work()


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _plans(connection: Connection, statements: Mapping[str, str], rows: int) -> dict[str, str]:
    """Return each statement's time, pages, scans and locks; the last three do not depend on the machine."""
    return {label: _plan(connection, statement, rows) for label, statement in statements.items()}


def _plan(connection: Connection, statement: str, rows: int) -> str:
    explain = f"EXPLAIN (ANALYZE, BUFFERS, WAL, TIMING OFF, FORMAT JSON) {statement}".encode()
    results = []
    for repeat in range(_REPEATS):
        values = {
            "number": 77,
            "key": f"new:{repeat}",
            "old": f"rehearsal:{rows // 2 + repeat}",
            "id": rows // 2 + repeat,
        }
        with connection.transaction(force_rollback=True):
            [result] = connection.execute(explain, values).fetchone() or []
            locks = connection.execute(divisions.LOCKS.encode()).fetchone()
        results.append(result)
    plan = results[-1]["Plan"]
    times = median(one["Planning Time"] + one["Execution Time"] for one in results)
    pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    text = json.dumps(plan)
    scans = text.count('Scan", ') - text.count('"Never Executed"')
    return f"{times:.2f} ms, {pages:,} pages, {scans} scans, {locks} locks, {plan.get('WAL Bytes', 0):,} B of log"
