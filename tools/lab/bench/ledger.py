"""
`python -m lab bench --ledger`: the cost of signed roots over a million entries.

Runs as a separate process with the service's settings in its environment. It writes entries, signs roots over them,
and audits, exports and verifies all. It counts CPU seconds of this process and of its PostgreSQL backend, which depend
little on other load of the machine.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

from devstack.console import echo
from devstack.django_process import run_django
from devstack.files import read_json, write_json
from devstack.preparation import short_lived_stack

PEOPLE, EACH = 10_000, 100


def bench_ledger(path: Path) -> int:
    """Measure on a temporary database, print, and write the figures to `path`."""
    settings = {"DATABASE_STATEMENT_TIMEOUT_SECONDS": "0", "LOG_LEVEL": "ERROR"}
    with short_lived_stack(settings, owns_tables=True) as (folder, environment):
        result = folder / "ledger.json"
        arguments = ("-m", "lab.bench.ledger", str(result), str(PEOPLE))
        run_django(folder / "ledger.log", environment, *arguments)
        figures = read_json(result)
    echo(
        f"{figures['entries']:,} entries of {PEOPLE:,} people, {figures['roots']} roots; "
        "CPU microseconds for each entry"
    )
    for step, cost in figures["cpu_us_per_entry"].items():
        cpu = f"{cost['python']:7.1f} Python {cost['postgres']:7.1f} PostgreSQL"
        echo(f"  {step:10} {cpu} {cost['seconds']:8.1f} s in all")
    echo(f"  {figures['bytes_per_entry']} bytes are kept for each entry")
    write_json(path, figures)
    echo(f"Written to {path}")
    return 0


def measure(people: int, folder: Path) -> dict[str, Any]:
    """Fill the database, run every step once, and return the figures."""
    from lab.bench.admin_data import fill_ledger
    from proofs.keys import public_keys
    from proofs.models import LedgerRoot
    from proofs.services.audit import find_differences
    from proofs.services.export import ExportVerification, ledger_lines
    from proofs.services.roots import close_roots

    fill_ledger(people, EACH)
    counts = dict.fromkeys(("roots", "entries", "erased", "open entries"), 0)
    export = folder / "export.jsonl"

    def write_export() -> None:
        with export.open("w") as file:
            file.writelines(f"{line}\n" for line in ledger_lines())

    def verify() -> None:
        with export.open() as lines:
            _none(ExportVerification(public_keys()).faults(lines))

    steps: dict[str, Callable[[], object]] = {
        "close": close_roots,
        "audit": lambda: _none(find_differences(counts)),
        "export": write_export,
        "verify": verify,
    }
    entries = people * EACH
    return {
        "cpu_us_per_entry": {name: _cost(step, entries) for name, step in steps.items()},
        "entries": counts["entries"],
        "roots": LedgerRoot.objects.count(),
        "bytes_per_entry": _bytes_kept() // entries,
    }


def _none(findings: Iterator[object]) -> None:
    if (first := next(findings, None)) is not None:
        raise RuntimeError(f"the ledger differs: {first}")


def _cost(step: Callable[[], object], entries: int) -> dict[str, float]:
    spent: dict[str, float] = {}
    with _counted(spent):
        step()
    each = {name: round(1e6 * spent[name] / entries, 2) for name in ("python", "postgres")}
    return {**each, "seconds": round(spent["seconds"], 1)}


@contextmanager
def _counted(spent: dict[str, float]) -> Iterator[None]:
    """Measure CPU seconds of this process and of its database session, and wall time."""
    before = (time.process_time(), _backend_seconds(), time.monotonic())
    yield
    after = (time.process_time(), _backend_seconds(), time.monotonic())
    spent.update(
        zip(
            ("python", "postgres", "seconds"),
            (b - a for a, b in zip(before, after, strict=True)),
            strict=True,
        )
    )


def _backend_seconds() -> float:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _bytes_kept() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name", [_TABLES]
        )
        (size,) = cursor.fetchone()
    return int(size)


_TABLES = ["credits_root", "credits_roottree", "credits_accountsalt"]

if __name__ == "__main__":
    django.setup()
    target = Path(sys.argv[1])
    write_json(target, measure(int(sys.argv[2]), target.parent))
