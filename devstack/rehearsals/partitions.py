"""
`python -m devstack partition-rehearsal`: the ledger's entries are divided by month while entries are being posted.

The table as it is becomes the first partition, so no row is moved. A unique index of a divided table must contain what
it is divided by. So the key that posts once moves into a table beside it, and no foreign key names an entry any more.
"""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from psycopg.errors import InvalidColumnReference, LockNotAvailable
from psycopg.rows import scalar_row

from devstack.console import say, step
from devstack.rehearsals import partition_statements as statements
from devstack.services.archive import wait_until
from devstack.services.postgres import Postgres
from devstack.services.template import TEMPLATE, copy_template

_SETTINGS = ("max_wal_size=4GB", "jit=off")
_POST_EVERY_SECONDS, _TRIES, _REPEATS = 0.02, 20, 5
Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class Options:
    """How many entries there are."""

    rows: int


def run(options: Options) -> int:
    """Divide the table and print what it took, and what the statements of every day take before and after."""
    with tempfile.TemporaryDirectory(prefix="partitions-") as folder:
        server = Postgres(Path(folder), Path(folder) / "log", make_cluster=copy_template, settings=_SETTINGS)
        with server.running():
            server.ensure_database(template=TEMPLATE)
            with psycopg.connect(server.url(), autocommit=True, row_factory=scalar_row) as connection:
                return rehearse(connection, server.url(), options.rows)


def rehearse(connection: Connection, url: str, rows: int) -> int:
    """Do it in this database; return 1 if anything is wrong afterwards."""
    with step(f"{rows:,} entries"):
        for statement in statements.FILL:
            connection.execute(statement.encode(), {"rows": rows})
    size = connection.execute(statements.SIZE.encode()).fetchone()
    before = _plans(connection, statements.POST, rows)
    postings = Postings(url)
    with postings.going_on():
        postings.wait_for_some()
        took = dict(_divide(connection))
        postings.wait_for_some()
    connection.execute(b"ANALYZE credits_entry")
    after = _plans(connection, statements.POST_DIVIDED, rows)
    wrong = [
        label
        for label, check in statements.CHECKS.items()
        if not connection.execute(check.encode()).fetchone()
    ]
    say(f"\nThe table with its indexes has {size}. {postings}\n\n| step | time |\n|---|---:|")
    say("\n".join(f"| {label} | {seconds:.2f} s |" for label, seconds in took.items()))
    say("\n| statement | before | after |\n|---|---|---|")
    say("\n".join(f"| {label} | {before[label]} | {after[label]} |" for label in before))
    say("\n".join(f"✗ {label}" for label in wrong) or "✓ the entries are whole, and a key posts once")
    return int(bool(wrong))


class Postings:
    """Entries that are posted at a steady pace meanwhile, and how long each took."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ended = threading.Event()
        self._took: list[float] = []
        self._failure: BaseException | None = None

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Post for the length of the block; raise what a posting raised."""
        thread = threading.Thread(target=self._post_until_ended)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
        if self._failure:
            raise self._failure

    def wait_for_some(self) -> None:
        """Return once more entries were posted, or none can be."""
        enough = len(self._took) + 25
        wait_until(lambda: len(self._took) >= enough or self._failure is not None, "no entry is posted")

    def _post_until_ended(self) -> None:
        try:
            with psycopg.connect(self._url, autocommit=True) as connection:
                while not self._ended.wait(_POST_EVERY_SECONDS):
                    began = time.monotonic()
                    self._post(connection, f"meanwhile:{len(self._took)}")
                    self._took.append(time.monotonic() - began)
        except psycopg.Error as error:
            self._failure = error

    def _post(self, connection: psycopg.Connection[Any], key: str) -> None:
        """Post as the service does, and as it would have to once the table has no such unique key any more."""
        values = {"user": len(self._took) % statements.ACCOUNTS + 1, "key": key}
        try:
            connection.execute(statements.POST.encode(), values)
        except InvalidColumnReference:
            connection.execute(statements.POST_DIVIDED.encode(), values)

    def __str__(self) -> str:
        slowest = 1000 * max(self._took)
        return f"{len(self._took):,} entries were posted meanwhile; the slowest took {slowest:.0f} ms."


def _divide(connection: Connection) -> Iterator[tuple[str, float]]:
    """Do it; yield each step with the seconds that it took."""
    connection.execute(b"SET lock_timeout = '1s'")
    border = str(connection.execute(statements.BORDER.encode()).fetchone())
    for label, script in statements.BESIDE_THE_SERVICE.items():
        yield label, _timed(partial(_execute, connection, script, border))
    kept = [line for query in statements.TAKEN_OVER for line in _lines(connection, query)]
    yield "an empty divided table with the same indexes", _timed(partial(_execute, connection, kept, border))
    references = _lines(connection, statements.REFERENCES)
    say("\n".join(f"  · {line}" for line in references))
    dropped = [*references, *_lines(connection, statements.ROW_TRIGGERS)]
    yield (
        "swap: the one exclusive lock",
        _timed(
            lambda: _in_one_transaction(connection, [statements.LOCK, *dropped, *statements.SWAP], border)
        ),
    )
    yield "twelve months ahead", _timed(partial(_execute, connection, statements.MONTHS, border))
    _execute(connection, _lines(connection, statements.STATEMENT_TRIGGERS), border)


def _lines(connection: Connection, query: str) -> list[str]:
    return list(connection.execute(query.encode()))


def _execute(connection: Connection, script: Sequence[str], border: str) -> None:
    for statement in script:
        _until_locked(partial(connection.execute, statement.format(border=border).encode()))


def _in_one_transaction(connection: Connection, script: Sequence[str], border: str) -> None:
    def attempt() -> None:
        with connection.transaction():
            for statement in script:
                connection.execute(statement.format(border=border).encode())

    _until_locked(attempt)


def _until_locked(work: Callable[[], object]) -> None:
    """Try again where a lock was not to be had within a second, so that nobody queues behind it for longer."""
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


def _plans(connection: Connection, post: str, rows: int) -> dict[str, str]:
    """Return what each statement takes: its time, and the pages, scans and locks that do not depend on the machine."""
    return {
        label: _plan(connection, statement, rows)
        for label, statement in {"post an entry": post, **statements.EVERY_DAY}.items()
    }


def _plan(connection: Connection, statement: str, rows: int) -> str:
    explain = f"EXPLAIN (ANALYZE, BUFFERS, WAL, TIMING OFF, FORMAT JSON) {statement}".encode()
    results = []
    for repeat in range(_REPEATS):
        values = {
            "user": 77,
            "key": f"new:{repeat}",
            "old": f"rehearsal:{rows // 2 + repeat}",
            "id": rows // 2 + repeat,
        }
        with connection.transaction(force_rollback=True):
            [result] = connection.execute(explain, values).fetchone() or []
            locks = connection.execute(statements.LOCKS.encode()).fetchone()
        results.append(result)
    plan = results[-1]["Plan"]
    times = median(one["Planning Time"] + one["Execution Time"] for one in results)
    pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    text = json.dumps(plan)
    scans = text.count('Scan", ') - text.count('"Never Executed"')
    return f"{times:.2f} ms, {pages:,} pages, {scans} scans, {locks} locks, {plan.get('WAL Bytes', 0):,} B of log"
