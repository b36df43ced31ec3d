"""SoftHSM: a PKCS#11 device in software, from Debian's packages; nothing is installed into the system."""

import fcntl
import subprocess
from pathlib import Path

from devstack.console import step
from devstack.files import DATA

_PACKAGES = ("libsofthsm2", "softhsm2")
_SYSTEM = Path("/")
_LOCAL = DATA / "softhsm"
_MODULE, _UTILITY = "usr/lib/softhsm/libsofthsm2.so", "usr/bin/softhsm2-util"


def softhsm() -> tuple[Path, Path]:
    """Return the module and the utility: the system's, or those of packages that are unpacked here once."""
    for root in (_SYSTEM, _LOCAL):
        if (root / _MODULE).exists() and (root / _UTILITY).exists():
            return root / _MODULE, root / _UTILITY
    _LOCAL.mkdir(parents=True, exist_ok=True)
    with (_LOCAL / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (_LOCAL / _UTILITY).exists():
            with step("installing SoftHSM"):
                _unpack()
    return _LOCAL / _MODULE, _LOCAL / _UTILITY


def _unpack() -> None:
    if _run("apt-get", "download", *_PACKAGES).returncode:
        # A fresh machine has no lists of packages.
        _run("apt-get", "update").check_returncode()
        _run("apt-get", "download", *_PACKAGES).check_returncode()
    # The utility last, since it says that all of them are there.
    for name in _PACKAGES:
        (package,) = _LOCAL.glob(f"{name}_*.deb")
        _run("dpkg", "-x", str(package), str(_LOCAL)).check_returncode()


def _run(*command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=_LOCAL, capture_output=True, check=False)
