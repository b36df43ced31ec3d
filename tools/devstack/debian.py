"""Programs from Debian packages, unpacked into the data folder without installation."""

import fcntl
import subprocess
from pathlib import Path
from typing import IO

from devstack.console import step
from devstack.files import DATA


def unpacked(name: str, *packages: str, only: str = "*") -> Path:
    """
    Return a folder with the packages' files laid out as under `/`, downloaded once under this name.

    `only` is a pattern of paths, such as `./usr/bin/*`.

    Raises:
        CalledProcessError: `apt-get` or `dpkg-deb` is missing, or the packages cannot be fetched.
    """
    root = DATA / name
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (root / "complete").exists():
            with step(f"fetching {name}"):
                _unpack(root, packages, only)
    return root


def libraries(root: Path) -> str:
    """Return the folder of a program's libraries, for LD_LIBRARY_PATH."""
    return ":".join({str(path.parent) for path in root.glob("usr/lib/*/*.so*")})


def _unpack(root: Path, packages: tuple[str, ...], only: str) -> None:
    try:
        _run(root, "apt-get", "download", *packages)
    except subprocess.CalledProcessError:
        # A fresh machine has no package lists.
        _run(root, "apt-get", "update")
        _run(root, "apt-get", "download", *packages)
    for package in sorted(root.glob("*.deb")):
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE
        ) as archive:
            _run(root, "tar", "--extract", "--wildcards", only, stdin=archive.stdout)
        package.unlink()
    (root / "complete").touch()


def _run(root: Path, *command: str, stdin: IO[bytes] | None = None) -> None:
    subprocess.run(command, cwd=root, stdin=stdin, check=True, capture_output=True)
