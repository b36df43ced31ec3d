"""SoftHSM: a PKCS#11 device in software, the system's or from Debian's packages."""

from pathlib import Path

from devstack.debian import unpacked

_MODULE, _UTILITY = "usr/lib/softhsm/libsofthsm2.so", "usr/bin/softhsm2-util"


def softhsm() -> tuple[Path, Path]:
    """Return the module and the utility."""
    system = Path("/")
    installed = (system / _MODULE).exists() and (system / _UTILITY).exists()
    root = system if installed else unpacked("softhsm", "libsofthsm2", "softhsm2")
    return root / _MODULE, root / _UTILITY
