"""How the double itself misbehaves towards the clients of its API."""

import threading
from dataclasses import dataclass
from typing import Literal

from devstack.stripe.wire.exchange import Request, Response
from devstack.stripe.wire.refusals import Refused

Kind = Literal["fail", "error_after_commit", "timeout_after_commit", "slow"]
_WORDS = {
    409: ("invalid_request_error", "This object cannot be accessed right now; try again.", "lock_timeout"),
    429: ("invalid_request_error", "Request rate limit exceeded.", "rate_limit"),
    500: ("api_error", "An unknown error occurred", None),
}


@dataclass
class Fault:
    """One misbehaviour towards the next `left` matching requests; None means all of them."""

    kind: Kind
    left: int | None = 1
    method: str | None = None
    path: str | None = None
    status: int = 500
    seconds: float = 0
    saved: bool = False

    def matches(self, request: Request) -> bool:
        """Say whether the request is meant; `path` is the beginning of its path."""
        right_method = self.method in (None, request.method)
        return right_method and request.path.startswith(self.path or "/v1/")


class Faults:
    """The misbehaviours that are still to come; a restart forgets them."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> None:
        """Misbehave once the matching requests come."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """Behave again."""
        with self._lock:
            self._faults.clear()

    def use(self, kind: Kind, request: Request) -> Fault | None:
        """Return the fault of this kind for the request and count its use."""
        with self._lock:
            for fault in self._faults:
                if fault.kind == kind and fault.matches(request):
                    self._count(fault)
                    return fault
        return None

    def _count(self, fault: Fault) -> None:
        if fault.left is not None:
            fault.left -= 1
            if fault.left <= 0:
                self._faults.remove(fault)


def failure(status: int) -> Refused:
    """Return Stripe's words for the status."""
    kind, message, code = _WORDS.get(status, _WORDS[500])
    return Refused(status, kind, message, code=code)


def error_response(status: int) -> Response:
    """Return the answer that the failure gives."""
    return Response(status, {"error": failure(status).error})
