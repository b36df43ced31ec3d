"""Third-party programs of a cluster: Debian packages, and Patroni in its own virtual environment."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from devstack.console import step
from devstack.debian import libraries, unpacked
from devstack.files import DATA

_HAPROXY = ("haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1")
_PATRONI = ("patroni[etcd3]==4.1.5", "psycopg[binary]==3.3.9")


@cache
def etcd() -> Path:
    """Return the program."""
    return _installed("etcd") or unpacked("etcd", "etcd-server") / "usr/bin/etcd"


@cache
def haproxy() -> Path:
    """Return the program."""
    return _installed("haproxy") or unpacked("haproxy", *_HAPROXY) / "usr/sbin/haproxy"


@cache
def patroni() -> Path:
    """Return the program; install it from the Python registry if needed."""
    folder = DATA / "patroni"
    stamp = folder / "installed"
    wanted = " ".join(_PATRONI)
    if not (stamp.exists() and stamp.read_text() == wanted):
        with step("installing Patroni"):
            shutil.rmtree(folder, ignore_errors=True)
            _run(sys.executable, "-m", "venv", str(folder))
            _run(str(folder / "bin" / "pip"), "install", "--quiet", *_PATRONI)
        stamp.write_text(wanted)
    return folder / "bin" / "patroni"


def with_libraries(name: str) -> dict[str, str]:
    """Return the environment variables of a program fetched under this name."""
    return {**os.environ, "LD_LIBRARY_PATH": libraries(DATA / name)}


def _installed(name: str) -> Path | None:
    path = shutil.which(name)
    return Path(path) if path else None


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
