"""`python -m devstack stress`: many postbacks from several processes, and whether every balance is right."""

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

_WORK = "devstack.ad_networks.stress_worker"


def run_stress(*, postbacks: int, processes: int, users: int) -> int:
    """Run on a database of its own, print the figures, and return 1 where a balance is not the model's."""
    with (
        tempfile.TemporaryDirectory(prefix="stress-") as folder,
        start_services(Path(folder), block_time=1) as services,
    ):
        home = Path(folder)
        settings = django_environment(services, keep_secrets(home / "secrets.json"), port=80, block_time=1)
        environment = process_environment(settings | {"LOG_LEVEL": "ERROR", "DATABASE_POOL_SIZE": "1"})
        with step(f"signing {postbacks} postbacks of {users} users"):
            run_django(home / "migrate.log", environment, "manage.py", "migrate")
            counts = [str(number) for number in (postbacks, processes, users)]
            run_django(home / "prepare.log", environment, "-m", _WORK, "prepare", folder, *counts)
        seconds = _send(home, environment, processes)
        run_django(home / "judge.log", environment, "-m", _WORK, "judge", folder)
        return _report(home, postbacks, processes, seconds)


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
            raise RuntimeError(f"a process of the stress test failed; see {home}/send-*.log")
        return time.monotonic() - started


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("a process of the stress test has no pipe")
    return stream


def _report(home: Path, postbacks: int, processes: int, seconds: float) -> int:
    result = read_json(home / "result.json")
    for line in result["differences"]:
        say(f"  ✗ {line}")
    say(f"  {postbacks} postbacks from {processes} processes in {seconds:.1f} s: {postbacks / seconds:.0f}/s")
    say(f"  answers {result['answers']}, rows {result['rows']}, entries {result['entries']}")
    say(f"  credits {result['credits']}, the model's {result['expected']}")
    say("✗ differences" if result["differences"] else "✓ every balance and experience is the model's")
    return int(bool(result["differences"]))
