"""`python -m devstack storm`: 50,000 postbacks from many processes, and what everybody has afterwards."""

import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from devstack.console import say, step
from devstack.django_process import run_django
from devstack.environment import django_environment, keep_secrets, process_environment
from devstack.files import PROJECT, read_json
from devstack.services.stack import start_services

_WORK = "devstack.ad_networks.storm_work"


def storm(*, postbacks: int, processes: int, people: int) -> int:
    """Run a storm on a database of its own, print the figures, and return 1 where a balance is not the model's."""
    with (
        tempfile.TemporaryDirectory(prefix="storm-") as folder,
        start_services(Path(folder), block_time=1) as services,
    ):
        home = Path(folder)
        settings = django_environment(services, keep_secrets(home / "secrets.json"), port=80, block_time=1)
        environment = process_environment(settings | {"LOG_LEVEL": "ERROR", "DATABASE_POOL_SIZE": "1"})
        with step(f"signing {postbacks} postbacks of {people} people"):
            run_django(home / "migrate.log", environment, "manage.py", "migrate")
            counts = [str(number) for number in (postbacks, processes, people)]
            run_django(home / "prepare.log", environment, "-m", _WORK, "prepare", folder, *counts)
        seconds = _send(home, environment, processes)
        run_django(home / "judge.log", environment, "-m", _WORK, "judge", folder)
        return _tell(home, postbacks, processes, seconds)


def _send(home: Path, environment: dict[str, str], processes: int) -> float:
    """Let all processes begin together, and return the seconds until the last one ends."""
    with ExitStack() as logs:
        senders = [
            subprocess.Popen(
                [sys.executable, "-m", _WORK, "send", str(home), str(part)],
                env=environment,
                cwd=PROJECT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=logs.enter_context((home / f"send-{part}.log").open("wb")),
            )
            for part in range(processes)
        ]
        for sender in senders:
            _pipe(sender.stdout).readline()
        started = time.monotonic()
        for sender in senders:
            _pipe(sender.stdin).close()
        for sender in senders:
            sender.wait()
        if any(sender.returncode for sender in senders):
            raise RuntimeError(f"a process of the storm failed; see {home}/send-*.log")
        return time.monotonic() - started


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("a process of the storm has no pipe")
    return stream


def _tell(home: Path, postbacks: int, processes: int, seconds: float) -> int:
    judged = read_json(home / "judged.json")
    for line in judged["faults"]:
        say(f"  ✗ {line}")
    say(f"  {postbacks} postbacks from {processes} processes in {seconds:.1f} s: {postbacks / seconds:.0f}/s")
    say(f"  answers {judged['answers']}, rows {judged['rows']}, entries {judged['entries']}")
    say(f"  credits {judged['credits']}, the model's {judged['wanted']}")
    say("✗ differences" if judged["faults"] else "✓ every balance and experience is the model's")
    return int(bool(judged["faults"]))
