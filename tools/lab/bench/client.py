"""
The load client: one process, one thread, raw keep-alive sockets. It costs about 0.1 ms a call.

It reads a job (see `lab.bench.load`) from the file named by its first argument, connects, prints "ready", and
starts when it reads a line. Closed loop: each connection sends its next request after the last response. Open
loop (`rate`): requests are sent at fixed times on any free connection; latency counts from the scheduled time.
After 429 and 503 the client retries after Retry-After, as a wallet would; latency counts from the first attempt.
"""

import heapq
import json
import select
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_REPEATED = (b"429", b"503")
_REPEAT_SECONDS = 30  # how long after the end of a run 429 and 503 are still retried
_CHUNK = 65_536


@dataclass(slots=True)
class _Connection:
    """A keep-alive connection and its pending request."""

    address: tuple[str, int]
    lane: int
    socket: socket.socket
    request: int = -1
    wanted_at: float = 0.0
    received: bytes = b""

    def begin(self, request: int, wanted_at: float) -> None:
        self.request, self.wanted_at, self.received = request, wanted_at, b""

    def receive(self) -> bytes:
        try:
            received = self.socket.recv(_CHUNK)
        except ConnectionResetError:
            received = b""
        self.received += received
        return received

    def reconnect(self) -> None:
        self.socket.close()
        self.socket = _connected(self.address)


@dataclass
class _Run:
    """The state of a run: the remaining requests of each lane, and the responses."""

    lanes: list[deque[tuple[int, bytes]]]
    cycles: bool
    ends_at: float = 0.0
    repeats: int = 0
    # request number, scheduled at, answered at, status, body
    answers: list[tuple[int, float, float, int, str]] = field(default_factory=list)

    def next_of(self, lane: int, at: float) -> tuple[int, bytes] | None:
        waiting = self.lanes[lane]
        if not waiting or at >= self.ends_at:
            return None
        request = waiting.popleft()
        if self.cycles:
            waiting.append(request)
        return request

    def note(self, connection: _Connection, status: int, body: bytes) -> None:
        text = body.decode(errors="replace") if status != 200 else ""
        self.answers.append((connection.request, connection.wanted_at, time.monotonic(), status, text))


def answer_in(received: bytes) -> tuple[bytes, bytes] | None:
    """Return head and body, or None while the response is incomplete."""
    head, separator, body = received.partition(b"\r\n\r\n")
    if not separator:
        return None
    lowered = head.lower()
    at = lowered.find(b"content-length:")
    if at < 0:
        is_whole = body.endswith(b"0\r\n\r\n") if b"chunked" in lowered else True
    else:
        is_whole = len(body) >= int(lowered[at + 15 : at + 26].split(b"\r\n", 1)[0])
    return (lowered, body) if is_whole else None


def retry_after(head: bytes) -> float:
    """Return the Retry-After of a lower-cased head, in seconds."""
    at = head.find(b"retry-after:")
    return float(head[at + 12 :].split(b"\r\n", 1)[0]) if at >= 0 else 1.0


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Send the job's requests; return the responses and the client's own CPU time."""
    requests = [text.encode() for text in job["requests"]]
    lanes = [deque((number, requests[number]) for number in lane) for lane in job["lanes"]]
    state = _Run(lanes, job["cycles"])
    address = (job["host"], job["port"])
    connections = [
        _Connection(address, number % len(lanes), _connected(address)) for number in range(job["clients"])
    ]
    print("ready", flush=True)
    sys.stdin.readline()
    cpu, started = time.process_time(), time.monotonic()
    state.ends_at = started + job["seconds"]
    _loop(state, connections, requests, job["rate"])
    return {
        "started": started,
        "ended": time.monotonic(),
        "cpu_seconds": time.process_time() - cpu,
        "repeats": state.repeats,
        "answers": state.answers,
    }


def _loop(state: _Run, connections: list[_Connection], requests: list[bytes], rate: float) -> None:
    poll = select.epoll()
    by_number = {connection.socket.fileno(): connection for connection in connections}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    later: list[tuple[float, int]] = []  # retries: when, and on which connection
    idle, busy, due = deque(connections), 0, time.monotonic()
    while idle or busy:
        now = time.monotonic()
        while later and later[0][0] <= now:
            connection = by_number[heapq.heappop(later)[1]]
            connection.socket.sendall(requests[connection.request])
        while idle and (not rate or due <= now):
            connection = idle.popleft()
            request = state.next_of(connection.lane, due if rate else now)
            if request is None:
                continue  # its lane is empty
            connection.begin(request[0], due if rate else time.monotonic())
            connection.socket.sendall(request[1])
            busy += 1
            due += 1 / rate if rate else 0.0
        for number, _ in (
            poll.poll(_timeout(now, later, due if rate and idle else None)) if busy or idle else ()
        ):
            connection = by_number[number]
            received = connection.receive()
            result = answer_in(connection.received)
            if result is None and received:
                continue
            if result is None:  # closed without a response: never retried, because it may have been accepted
                state.note(connection, 0, b"the connection was closed")
                del by_number[number]
                connection.reconnect()
                by_number[connection.socket.fileno()] = connection
                poll.register(connection.socket.fileno(), select.EPOLLIN)
            elif result[0][9:12] in _REPEATED and now < state.ends_at + _REPEAT_SECONDS:
                state.repeats += 1
                connection.received = b""
                heapq.heappush(later, (time.monotonic() + retry_after(result[0]), number))
                continue
            else:
                state.note(connection, int(result[0][9:12]), result[1])
            busy -= 1
            idle.append(connection)


def _timeout(now: float, later: list[tuple[float, int]], due: float | None) -> float:
    times = [at for at in (later[0][0] if later else None, due) if at is not None]
    return max(0.0, min(times) - now) if times else 60.0


def _connected(address: tuple[str, int]) -> socket.socket:
    made = socket.create_connection(address, timeout=60)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


if __name__ == "__main__":
    result = run(json.loads(Path(sys.argv[1]).read_text()))
    Path(sys.argv[2]).write_text(json.dumps(result))
