"""Programs of Debian's packages, unpacked beside the data; nothing is installed into the system."""

import fcntl
import subprocess
from pathlib import Path

from devstack.console import step
from devstack.files import DATA


def unpacked(name: str, *packages: str) -> Path:
    """
    Return the folder that holds the files of the packages as `/` would, fetched there once under this name.

    Raises:
        CalledProcessError: `apt-get` or `dpkg-deb` is missing, or the packages cannot be fetched.
    """
    root = DATA / name
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (root / "complete").exists():
            with step(f"fetching {name}"):
                _unpack(root, packages)
    return root


def libraries(root: Path) -> str:
    """Return where the libraries lie that came with a program, for LD_LIBRARY_PATH."""
    return ":".join({str(path.parent) for path in root.glob("usr/lib/*/*.so*")})


def _unpack(root: Path, packages: tuple[str, ...]) -> None:
    try:
        _run(root, "apt-get", "download", *packages)
    except subprocess.CalledProcessError:
        # A fresh machine has no lists of packages.
        _run(root, "apt-get", "update")
        _run(root, "apt-get", "download", *packages)
    for package in sorted(root.glob("*.deb")):
        _run(root, "dpkg-deb", "--extract", str(package), str(root))
        package.unlink()
    (root / "complete").touch()


def _run(root: Path, *command: str) -> None:
    subprocess.run(command, cwd=root, check=True, capture_output=True)
