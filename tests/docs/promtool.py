"""promtool, which checks and tests alert rules: the system's, or from Debian's package of Prometheus."""

import shutil
import subprocess
from pathlib import Path

from devstack.debian import unpacked

_PROGRAM = "usr/bin/promtool"


def promtool(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run promtool, which is fetched first where there is none, and return what it said."""
    installed = shutil.which("promtool")
    program = (
        Path(installed) if installed else unpacked("promtool", "prometheus", only=f"./{_PROGRAM}") / _PROGRAM
    )
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
