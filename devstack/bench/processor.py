"""Processor time by kind of process, as the kernel counts it: what a run took of the machine, and who took it."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from devstack.services.server import Server


@dataclass(frozen=True)
class Meter:
    """Knows the processes of the service, and those beside it: its servers, and the load generator."""

    service: Mapping[str, Server]
    beside: Mapping[str, Server]

    def read(self) -> "Reading":
        """Return the processor seconds that each kind of process has used so far."""
        return Reading(
            service={kind: _seconds(server.pid) for kind, server in self.service.items()},
            beside={kind: _seconds(server.pid) for kind, server in self.beside.items()}
            | {"load generator": time.process_time()},
            machine=_busy_seconds(),
            at=time.monotonic(),
        )


@dataclass(frozen=True)
class Reading:
    """Processor seconds by kind; `machine` is everybody's on all cores, `at` when it was read."""

    service: Mapping[str, float]
    beside: Mapping[str, float]
    machine: float
    at: float

    def since(self, earlier: "Reading") -> "Reading":
        """Return what was used since an earlier reading; `at` becomes the seconds in between."""
        return Reading(
            service={kind: now - earlier.service[kind] for kind, now in self.service.items()},
            beside={kind: now - earlier.beside[kind] for kind, now in self.beside.items()},
            machine=self.machine - earlier.machine,
            at=self.at - earlier.at,
        )

    @property
    def of_strangers(self) -> float:
        """The share of the machine that processes of nobody here took: how much to trust the run."""
        ours = sum(self.service.values()) + sum(self.beside.values())
        return max(0.0, self.machine - ours) / (self.at * (os.cpu_count() or 1))


def _seconds(pid: int) -> float:
    """Sum over the process, its descendants, and those of them that have ended."""
    process = psutil.Process(pid)
    while True:
        try:
            return sum(_spent(member) for member in [process, *process.children(recursive=True)])
        except psutil.NoSuchProcess:
            # A descendant ended meanwhile; its time is its parent's now, which was read before.
            if not process.is_running():
                raise


def _spent(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system + spent.children_user + spent.children_system)


def _busy_seconds() -> float:
    spent = psutil.cpu_times()
    return float(sum(spent) - spent.idle - getattr(spent, "iowait", 0.0) - getattr(spent, "guest", 0.0))
