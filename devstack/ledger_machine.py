"""`python -m devstack ledger-machine`: services of its own, one process, nothing left behind."""

import subprocess
import sys
import tempfile
from pathlib import Path

from devstack.environment import django_environment, keep_secrets, process_environment
from devstack.files import PROJECT
from devstack.services.stack import start_services

# Small enough that many adjustments wait for a second person.
_LIMIT = 100
# The same two clerks serve all runs.
_NO_LIMIT = str(10**12)


def run_machine(*, runs: int, steps: int, seed: int) -> int:
    """Run the machine on an empty database and return the process's exit status."""
    with (
        tempfile.TemporaryDirectory(prefix="machine-") as folder,
        start_services(Path(folder), block_time=None, durable=False) as services,
    ):
        kept = keep_secrets(Path(folder) / "secrets.json")
        settings = django_environment(services, kept, port=1, block_time=None) | {
            "APPROVAL_CREDITS_PER_PERSON": str(_LIMIT),
            "APPROVAL_CREDITS_PER_CLERK": _NO_LIMIT,
            "APPROVAL_CREDITS_PER_DAY": _NO_LIMIT,
            "CEILING_CREDITS_PER_DAY": _NO_LIMIT,
            "LOG_LEVEL": "CRITICAL",
        }
        command = [sys.executable, "-m", "tests.economy", str(runs), str(steps), str(seed)]
        return subprocess.run(command, env=process_environment(settings), cwd=PROJECT, check=False).returncode
