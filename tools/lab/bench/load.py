"""Running the load client, and statistics of its measurements."""

import json
import math
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from devstack.files import PROJECT, read_json
from devstack.process_lifetime import with_death_signal

_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Load:
    """
    The requests to send, in lanes; the number of connections; and the duration, unless the lanes are empty earlier.

    Each connection sends from one lane. With `rate`, in requests per second, the loop is open.
    """

    lanes: Sequence[Sequence[str]]
    clients: int
    seconds: float
    rate: float = 0
    cycles: bool = False


@dataclass(frozen=True)
class Response:
    """The response to one request; times are of the monotonic clock."""

    wanted_at: float
    answered_at: float
    status: int
    body: str

    @property
    def milliseconds(self) -> float:
        """Milliseconds from the scheduled time of the request to its response."""
        return (self.answered_at - self.wanted_at) * 1e3


@dataclass(frozen=True)
class Sent:
    """All responses of a run, and the CPU time of the client."""

    started: float
    answers: Sequence[Response]
    cpu_seconds: float
    repeats: int

    @property
    def accepted(self) -> list[Response]:
        """The responses with status 200."""
        return [response for response in self.answers if response.status == 200]

    @property
    def seconds(self) -> float:
        """Seconds from the start to the last response."""
        return max((result.answered_at for result in self.answers), default=self.started) - self.started

    @property
    def refusals(self) -> dict[str, int]:
        """Count the other responses by status and problem code."""
        return dict(Counter(_name(response) for response in self.answers if response.status != 200))

    def figures(self) -> dict[str, Any]:
        """Return the figures for the report."""
        times = sorted(result.milliseconds for result in self.accepted)
        return {
            "accepted": len(times),
            "seconds": self.seconds,
            "accepted_per_second": len(times) / self.seconds if self.seconds else 0.0,
            "p50_ms": percentile(times, 50),
            "p90_ms": percentile(times, 90),
            "p99_ms": percentile(times, 99),
            "client_cpu_ms_per_call": self.cpu_seconds / max(1, len(self.answers)) * 1e3,
            "repeats": self.repeats,
            "refused": self.refusals,
        }


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of ascending values; 0 if there are none."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else 0.0


def send(base_url: str, load: Load, *, meanwhile: Callable[[], None] = lambda: None) -> Sent:
    """Run the client as a separate process until it ends; call `meanwhile` at the start and once a second."""
    requests = [request for lane in load.lanes for request in lane]
    numbers = iter(range(len(requests)))
    address = urlsplit(base_url)
    job = {
        "host": address.hostname,
        "port": address.port,
        "requests": requests,
        "lanes": [[next(numbers) for _ in lane] for lane in load.lanes],
        "clients": load.clients,
        "seconds": load.seconds,
        "rate": load.rate,
        "cycles": load.cycles,
    }
    with tempfile.TemporaryDirectory(prefix="load-") as name:
        job_path, result_path = Path(name) / "job.json", Path(name) / "result.json"
        job_path.write_text(json.dumps(job))
        command = [sys.executable, "-m", "lab.bench.client", str(job_path), str(result_path)]
        with subprocess.Popen(
            with_death_signal(command, signal.SIGKILL),
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            _run(client, meanwhile)
        result = read_json(result_path)
    results = [Response(*answer[1:]) for answer in result["answers"]]
    return Sent(result["started"], results, result["cpu_seconds"], result["repeats"])


def _run(client: "subprocess.Popen[str]", meanwhile: Callable[[], None]) -> None:
    if client.stdin is None or client.stdout is None or client.stdout.readline() != "ready\n":
        raise RuntimeError("The load client did not start.")
    meanwhile()
    client.stdin.write("\n")
    client.stdin.flush()
    while True:
        try:
            client.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            meanwhile()
        else:
            break
    if client.returncode != 0:
        raise RuntimeError(f"The load client ended with {client.returncode}.")


def _name(answer: Response) -> str:
    if answer.status == 0:
        return "closed"
    try:
        return f"{answer.status} {json.loads(answer.body)['code']}"
    except (ValueError, KeyError, TypeError):
        return str(answer.status)
