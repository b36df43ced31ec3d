"""`python -m lab months`: one process with temporary servers."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from devstack.console import echo
from devstack.files import PROJECT
from devstack.preparation import short_lived_stack


@dataclass(frozen=True)
class Options:
    """How many people and months, the seed of the random acts, the time for them, and the file for the figures."""

    people: int
    months: int
    seed: int
    minutes: int
    results: Path


def run(options: Options) -> int:
    """Run the months and print their figures; return the process's exit status."""
    options.results.parent.mkdir(parents=True, exist_ok=True)
    echo(f"{options.people} people, {options.months} months, seed {options.seed}")
    # Without it, a tenth of the time is spent on looking for a proxy's settings with each request to the double.
    settings = {"LOG_LEVEL": "CRITICAL", "NO_PROXY": "127.0.0.1"}
    with short_lived_stack(settings, owns_tables=True) as (folder, environment):
        numbers = [str(options.people), str(options.months), str(options.seed), str(options.minutes)]
        command = [
            sys.executable,
            "-m",
            "tests.months",
            str(folder / "stripe"),
            str(options.results),
            *numbers,
        ]
        status = subprocess.run(command, env=environment, cwd=PROJECT, check=False).returncode
    if status == 0:
        echo(options.results.read_text())
    return status
