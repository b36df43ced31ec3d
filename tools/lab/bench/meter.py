"""CPU time and memory of a running stack by component, read from /proc."""

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
SERVICE = ("web", "relay worker", "other workers")
COMPONENTS = (*SERVICE, "signer", "PostgreSQL", "node", "Redis")
# Maps a pattern of the command line to a component; children belong to their parent's component.
_KINDS = (
    ("web", re.compile(r"\bgranian\b")),
    ("relay worker", re.compile(r"celery\b.*\bworker\b.*(--queues relay(\s|$)|worker-relay)")),
    ("other workers", re.compile(r"celery\b.*\b(worker|beat)\b")),
    ("signer", re.compile(r"-m signer(\s|$)")),
    ("PostgreSQL", re.compile(r"bin/postgres\s")),
    ("node", re.compile(r"bin/anvil\s")),
    ("Redis", re.compile(r"redis-server")),
)
_OTHER = "other"


@dataclass(frozen=True)
class Process:
    """One process: its parent, and the CPU seconds of it and of its ended children."""

    pid: int
    parent: int
    seconds: float


@dataclass(frozen=True)
class Reading:
    """CPU seconds used so far by component and by the whole machine, at a time of the monotonic clock."""

    at: float
    seconds: Mapping[str, float]
    machine: float

    def since(self, earlier: "Reading") -> "Reading":
        """Return the usage since an earlier reading; `at` becomes the seconds between both."""
        used = {kind: now - earlier.seconds.get(kind, 0.0) for kind, now in self.seconds.items()}
        return Reading(self.at - earlier.at, used, self.machine - earlier.machine)

    def per_call(self, calls: float) -> dict[str, float]:
        """Return CPU milliseconds per call by component, and the sums that the report compares."""
        each = {kind: self.seconds.get(kind, 0.0) / calls * 1e3 for kind in COMPONENTS}
        service = sum(each[kind] for kind in (*SERVICE, "signer"))
        return each | {
            "service": service,
            "service + PostgreSQL + node": service + each["PostgreSQL"] + each["node"],
        }

    def share_of_others(self, own_seconds: float) -> float:
        """Return the share of the machine's CPU that other programs used; a high share makes the run unreliable."""
        others = self.machine - sum(self.seconds.values()) - own_seconds
        return max(0.0, others) / (self.at * (os.cpu_count() or 1))


class Meter:
    """Reads the tree of processes below `root`, the process that started the stack."""

    def __init__(self, root: int) -> None:
        self._root = root
        # Processes caused by the bench itself, such as the PostgreSQL backend of its connection.
        self.ignored: set[int] = set()

    def read(self) -> Reading:
        """Return what the stack has used so far; ended processes count for their parents."""
        sums: dict[str, float] = {}
        at = time.monotonic()
        for kind, process in self.members():
            if process.pid not in self.ignored:
                sums[kind] = sums.get(kind, 0.0) + process.seconds
        return Reading(at, sums, _machine_seconds())

    def members(self) -> Iterator[tuple[str, Process]]:
        """Yield every process of the stack with its component."""
        children: dict[int, list[Process]] = {}
        for process in _processes():
            children.setdefault(process.parent, []).append(process)
        waiting = [(_OTHER, process) for process in children.get(self._root, [])]
        while waiting:
            kind, process = waiting.pop()
            if kind == _OTHER:
                kind = kind_of(command_of(process.pid))
            yield kind, process
            waiting += [(kind, child) for child in children.get(process.pid, [])]

    def memory(self) -> list[dict[str, object]]:
        """Return component, resident and proportional megabytes of each process."""
        return [
            {"component": kind, "rss_mb": rss, "pss_mb": pss}
            for kind, process in sorted(self.members(), key=lambda member: (member[0], member[1].pid))
            for rss, pss in [megabytes(process.pid)]
        ]


def kind_of(command: str) -> str:
    """Return the component of a command line."""
    return next((kind for kind, pattern in _KINDS if pattern.search(command)), _OTHER)


def command_of(pid: int) -> str:
    """Return a process's command line; empty if it has ended."""
    return _text(f"/proc/{pid}/cmdline").replace("\0", " ")


def process_in(stat: str) -> Process:
    """Read one line of /proc/PID/stat; the name in it may contain anything."""
    pid, rest = stat.split(" (", 1)
    fields = rest.rpartition(") ")[2].split()
    return Process(int(pid), int(fields[1]), sum(map(int, fields[11:15])) / _TICK)


def _processes() -> Iterator[Process]:
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal() and (stat := _text(f"{entry.path}/stat")):
            yield process_in(stat)


def megabytes(pid: int) -> tuple[float, float]:
    """Return resident and proportional megabytes of a process; zeros if it has ended."""
    rollup = dict(line.split()[:2] for line in _text(f"/proc/{pid}/smaps_rollup").splitlines()[1:])
    return int(rollup.get("Rss:", 0)) / 1024, int(rollup.get("Pss:", 0)) / 1024


def _machine_seconds() -> float:
    user, nice, system, _, _, irq, softirq = map(int, _text("/proc/stat").split("\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + softirq) / _TICK


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):  # it has ended in the meantime
        return ""
