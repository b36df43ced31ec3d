"""Fault injection for API requests: failing, lost or late responses."""

import threading
from dataclasses import dataclass
from typing import Literal

from stripe_double.http import Request

FaultKind = Literal["fail", "error_after_commit", "timeout_after_commit", "slow"]


@dataclass
class Fault:
    """One fault for the next `remaining` matching requests; None means all of them."""

    kind: FaultKind
    remaining: int | None = 1
    method: str | None = None
    path: str | None = None
    status: int = 500
    seconds: float = 0
    code: str | None = None
    message: str | None = None
    saved: bool = False  # whether the idempotency key saves the error

    def matches(self, request: Request) -> bool:
        """Return whether the fault matches this request; `path` is a prefix."""
        return self.method in (None, request.method) and request.path.startswith(self.path or "/v1/")


class Faults:
    """The pending faults, in memory only."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> None:
        """Inject the fault into later matching requests."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()

    def use(self, kind: FaultKind, request: Request) -> Fault | None:
        """Return the fault of this kind for the request, and count its use."""
        with self._lock:
            for fault in self._faults:
                if fault.kind == kind and fault.matches(request):
                    self._count(fault)
                    return fault
        return None

    def _count(self, fault: Fault) -> None:
        if fault.remaining is not None:
            fault.remaining -= 1
            if fault.remaining <= 0:
                self._faults.remove(fault)
