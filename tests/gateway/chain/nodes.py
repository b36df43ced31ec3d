"""A node on a loopback port whose behaviour a test writes, to see what the transport makes of it."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.lost_connections import drop_packets

Response = tuple[int, bytes]
Behaviour = Callable[[list[dict[str, Any]]], Response]


def result(value: Any) -> Behaviour:
    """Respond to every call of a batch with the same result."""
    return lambda batch: reply([{"id": call["id"], "result": value} for call in batch])


def error(code: int, message: str) -> Behaviour:
    """Respond to every call of a batch with the same error."""
    fields = {"code": code, "message": message}
    return lambda batch: reply([{"id": call["id"], "error": fields} for call in batch])


def reply(body: Any, status: int = 200) -> Response:
    """Return an HTTP response with a JSON body."""
    return status, json.dumps(body).encode()


@dataclass
class Node:
    """The node: its responses, and the requests it got."""

    behave: Behaviour
    url: str = ""
    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    connections: set[tuple[str, int]] = field(default_factory=set)
    sockets: list[socket.socket] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    # Close the connection after each response without saying so, as an idle timeout would.
    hangs_up: bool = False
    # Where a redirecting response points to.
    location: str = ""

    def forget_connections(self) -> None:
        """Drop every packet of the open connections from now on, without a reset, as a firewall that forgot them."""
        for one in self.sockets:
            drop_packets(one)
        self.sockets.clear()

    @property
    def methods(self) -> list[str]:
        """The methods of its requests, in order."""
        return [call["method"] for batch in self.batches for call in batch]


@contextmanager
def running(behave: Behaviour) -> Iterator[Node]:
    """Yield a node that behaves so."""
    node = Node(behave)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body leave together, else each response waits 40 ms

        def do_POST(self) -> None:
            batch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            node.batches.append(batch)
            node.headers = dict(self.headers)
            if self.client_address not in node.connections:
                node.connections.add(self.client_address)
                node.sockets.append(self.connection)
            status, body = node.behave(batch)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if node.location:
                self.send_header("Location", node.location)
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = node.hangs_up

        def log_message(self, *args: Any) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    node.url = f"http://127.0.0.1:{server.server_port}/key-{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield node
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
