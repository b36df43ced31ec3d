"""`python -m lab ledger-machine`: one process with temporary servers."""

import subprocess
import sys

from devstack.environment import overriding
from devstack.files import PROJECT
from devstack.preparation import short_lived_stack

# No limits per clerk or day, because two clerks serve all runs. The limit per person is small, so most adjustments
# wait for a second person.
_NO_LIMIT = 10**12
_LIMITS = {"actor": _NO_LIMIT, "person": 100, "day": _NO_LIMIT, "ceiling": 10**7, "ceiling_day": _NO_LIMIT}


def run_machine(*, runs: int, steps: int, seed: int) -> int:
    """Run the machine on an empty database and return the process's exit status."""
    settings = {
        "LOG_LEVEL": "CRITICAL",
        **overriding(APPROVAL_LIMITS=dict.fromkeys(("credits", "bonuses", "refunds"), _LIMITS)),
    }
    with short_lived_stack(settings) as (_, environment):
        command = [sys.executable, "-m", "tests.economy", str(runs), str(steps), str(seed)]
        return subprocess.run(command, env=environment, cwd=PROJECT, check=False).returncode
