"""
The named points at which a process is killed: before or after a statement or call that passes a proxy.

`before`: the server has not received it. `after`: the server has executed it, but the process got no response.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import psutil

from lab.chaos.proxies import Side


@dataclass(frozen=True)
class Point:
    """A point in the work of one component."""

    name: str
    component: str
    server: str
    doing: str
    side: Side
    during: str = ""

    def matches(self, *, doing: str, during: Sequence[str], side: Side) -> bool:
        """Return whether this is the point; `during` are the statements of the transaction so far."""
        return (
            side is self.side
            and self.doing in doing
            and (not self.during or any(self.during in earlier for earlier in during))
        )


@dataclass
class Killing:
    """A trap that kills the first process to reach a point."""

    point: Point
    owner_of: Callable[[int, str], psutil.Process | None]
    triggered: threading.Event = field(default_factory=threading.Event)

    def triggers(self, *, doing: str, during: Sequence[str], side: Side, client_port: int) -> bool:
        """Kill the client's process if it belongs to the component and has reached the point."""
        if self.triggered.is_set() or not self.point.matches(doing=doing, during=during, side=side):
            return False
        process = self.owner_of(client_port, self.point.component)
        if process is None:
            return False
        process.kill()
        self.triggered.set()
        return True


# Action, component and server; then for each point its name, a text in its statement, and texts in earlier statements
# of the same transaction.
_MOMENTS = {
    ("accept", "web", "postgres"): [
        ("reading the rows", "token_session", ""),
        ("taking slots", "relay_take_slots", ""),
        ("storing calls", "relay_insert_calls", ""),
        ("the commit", "COMMIT", "relay_insert_calls"),
    ],
    ("accept", "web", "node"): [("asking the node", "eth_", "")],
    ("broadcast", "worker-relay", "postgres"): [
        ("reading the bytes", "attempt.raw, attempt.node_message", ""),
        ("marking as sent", "first_sent_at = coalesce(first_sent_at", ""),
    ],
    ("broadcast", "worker-relay", "node"): [("eth_sendRawTransaction", "eth_sendRawTransaction", "")],
    ("track", "worker-relay", "node"): [
        ("eth_getTransactionReceipt", "eth_getTransactionReceipt", ""),
        ("eth_getTransactionCount", "eth_getTransactionCount", ""),
    ],
    ("track", "worker-relay", "postgres"): [
        ("writing account nonces", "mined_account_nonce = greatest(", ""),
        ("writing receipts", "WITH receipt AS", ""),
    ],
    ("settle", "worker-relay", "postgres"): [
        ("final statuses", "real_cost = outcome.cost", ""),
        ("the charge", "captured_amount = nullif", ""),
        ("the experience", "WITH RECURSIVE wanted", "captured_amount = nullif"),
        ("the commit", "COMMIT", "captured_amount = nullif"),
    ],
    ("postback", "web", "postgres"): [
        ("storing it", "INSERT INTO earnings_postback", ""),
        ("the entry", "INSERT INTO credits_entry", "INSERT INTO earnings_postback"),
        ("the commit", "COMMIT", "INSERT INTO earnings_postback"),
    ],
    ("payout", "worker-default", "stripe"): [("asking for the invoice", "GET /v1/invoices", "")],
    ("payout", "worker-default", "postgres"): [
        ("the entry", "INSERT INTO credits_entry", ""),
        ("storing it", 'INSERT INTO "payments_payout"', ""),
        ("the commit", "COMMIT", 'INSERT INTO "payments_payout"'),
    ],
}
# Calls that the node rejects as underpriced, and calls that expire before the node accepts them.
_NEW_ATTEMPT = [
    ("storing the attempt", 'INSERT INTO "relay_attempt"', ""),
    ("the commit", "COMMIT", 'INSERT INTO "relay_attempt"'),
]


def _points(action: str, component: str, server: str, moments: Sequence[tuple[str, str, str]]) -> list[Point]:
    return [
        Point(f"{action} {side.value} {name}", component, server, doing, side, during)
        for name, doing, during in moments
        for side in Side
    ]


POINTS = [point for place, moments in _MOMENTS.items() for point in _points(*place, moments)]
REPLACEMENT_POINTS = _points("replace", "worker-relay", "postgres", _NEW_ATTEMPT)
CANCELLATION_POINTS = _points("cancel", "worker-relay", "postgres", _NEW_ATTEMPT)
