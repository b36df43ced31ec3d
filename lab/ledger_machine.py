"""`python -m lab ledger-machine`: services of its own, one process, nothing left behind."""

import subprocess
import sys

from devstack.files import PROJECT
from devstack.preparation import short_lived_stack

# Small enough that many adjustments wait for a second person.
_LIMIT = 100
# The same two clerks serve all runs.
_NO_LIMIT = str(10**12)


def run_machine(*, runs: int, steps: int, seed: int) -> int:
    """Run the machine on an empty database and return the process's exit status."""
    settings = {
        "APPROVAL_CREDITS_PER_PERSON": str(_LIMIT),
        "APPROVAL_CREDITS_PER_CLERK": _NO_LIMIT,
        "APPROVAL_CREDITS_PER_DAY": _NO_LIMIT,
        "CEILING_CREDITS_PER_DAY": _NO_LIMIT,
        "LOG_LEVEL": "CRITICAL",
    }
    with short_lived_stack(settings) as (_, environment):
        command = [sys.executable, "-m", "tests.economy", str(runs), str(steps), str(seed)]
        return subprocess.run(command, env=environment, cwd=PROJECT, check=False).returncode
