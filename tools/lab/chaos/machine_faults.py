"""Faults of the machine below the servers: a full disk, and clocks that are apart. Both need root."""

import errno
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import psycopg

from devstack.debian import unpacked
from lab.chaos.stack import Stack

_FULL_SECONDS, _APART_SECONDS = 20, 30
_NO_SPACE = "No space left on device"
_DISK_BYTES = 128 * 2**20
_WEB, _RELAY_WORKER, _DEFAULT_WORKER = "web", "worker-relay", "worker-default"

Context = AbstractContextManager[None]


@contextmanager
def _disk_full(folder: str, stack: Stack) -> Iterator[None]:
    """Move a folder of the cluster to a disk of its own, fill that for a while, and move the folder back."""
    place = stack.services.postgres.cluster / folder
    with _on_small_disk(place, stack):
        filler, log = place / "filler", stack.services.postgres.log_path
        before = log.read_text().count(_NO_SPACE)
        ends_at = time.monotonic() + _FULL_SECONDS
        while time.monotonic() < ends_at:
            _fill(filler)
            _use_wal(stack)
            time.sleep(0.5)
        filler.unlink()
        stack.wait_for("postgres")
        if log.read_text().count(_NO_SPACE) == before:
            raise RuntimeError("PostgreSQL has not met the full disk.")
        yield


def _use_wal(stack: Stack) -> None:
    """Begin another segment, for PostgreSQL has some in reserve."""
    with suppress(psycopg.OperationalError), psycopg.connect(stack.services.database_url) as owner:
        owner.execute("SELECT pg_switch_wal()")


@contextmanager
def _on_small_disk(place: Path, stack: Stack) -> Iterator[None]:
    aside = place.with_name(f"{place.name}-aside")
    with stack.stopped("postgres"):
        size = sum(file.stat().st_size for file in place.rglob("*")) + _DISK_BYTES
        place.rename(aside)
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
        _copy(aside, place)
    try:
        yield
    finally:
        with stack.stopped("postgres"):
            shutil.rmtree(aside)
            _copy(place, aside)
            subprocess.run(["umount", place], check=True)
            place.rmdir()
            aside.rename(place)


def _copy(source: Path, target: Path) -> None:
    """Copy a folder with its owners and rights."""
    target.mkdir(exist_ok=True)
    subprocess.run(["cp", "--archive", f"{source}/.", target], check=True)
    shutil.copystat(source, target)
    os.chown(target, source.stat().st_uid, source.stat().st_gid)


def _fill(filler: Path) -> None:
    with filler.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


@contextmanager
def _clocks_apart(ahead_seconds: Mapping[str, int], stack: Stack) -> Iterator[None]:
    """Run these processes for a while with clocks that are ahead or, with a negative number, behind."""
    with ExitStack() as shifted:
        for name, seconds in ahead_seconds.items():
            shifted.enter_context(_shifted(name, seconds, stack))
        time.sleep(_APART_SECONDS)
        yield


@contextmanager
def _shifted(name: str, seconds: int, stack: Stack) -> Iterator[None]:
    (library,) = unpacked("faketime", "libfaketime").rglob("libfaketime.so.1")
    with stack.stopped(name) as server:
        usual, prefix = server.environment or {}, server.prefix
        # A host name of its own, by which the difference is reported.
        server.prefix = ["unshare", "--uts", "sh", "-c", f'hostname {name}-apart && exec "$@"', "sh", *prefix]
        server.environment = {
            **usual,
            "LD_PRELOAD": str(library),
            "FAKETIME": f"{seconds:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
    try:
        yield
    finally:
        with stack.stopped(name):
            server.environment, server.prefix = usual, prefix


MACHINE_FAULTS: dict[str, Callable[[Stack], Context]] = {
    "postgres: data disk full for 20 s": partial(_disk_full, "base"),
    "postgres: WAL disk full for 20 s": partial(_disk_full, "pg_wal"),
    **{
        f"clocks: {name} {abs(seconds)} s {'ahead' if seconds > 0 else 'behind'}": partial(
            _clocks_apart, {name: seconds}
        )
        for name in (_WEB, _RELAY_WORKER, _DEFAULT_WORKER)
        for seconds in (60, -60)
    },
    "clocks: web 2 s ahead, relay worker 2 s behind": partial(_clocks_apart, {_WEB: 2, _RELAY_WORKER: -2}),
    "clocks: web 60 s behind, relay worker 60 s ahead": partial(
        _clocks_apart, {_WEB: -60, _RELAY_WORKER: 60}
    ),
}
