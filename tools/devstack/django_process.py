"""Short-lived Django processes: migrations, demo data, management commands."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from devstack.files import PROJECT


class DjangoFailed(RuntimeError):
    """A Django process failed; the message ends with its last lines."""


def process_environment(settings: dict[str, str]) -> dict[str, str]:
    """Return this process's environment updated with the settings, for a child process."""
    return {**os.environ, **settings, "PYTHONUNBUFFERED": "1"}


def run_django(
    log_path: Path,
    environment: Mapping[str, str],
    *arguments: str,
    folder: Path = PROJECT,
    python: str = sys.executable,
) -> None:
    """Run `python …` in the project's folder or that of another checkout, with its output in the log."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("wb") as log:
        command = [python, *arguments]
        outcome = subprocess.run(
            command, env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=False
        )
    if outcome.returncode != 0:
        lines = log_path.read_text(errors="replace").splitlines()[-5:]
        raise DjangoFailed("\n  ".join([f"{' '.join(arguments)} failed; see {log_path}", *lines]))
