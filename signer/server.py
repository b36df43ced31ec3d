"""
The signer's HTTP server, on a unix socket or over mutual TLS.

    POST /sign     signs a batch of transactions
    GET  /keys     the addresses
    GET  /chains   the ids of the chains, home first
    GET  /health   200 while the journal is readable
    GET  /metrics  metrics in Prometheus' text format
"""

import json
import logging
import select
import socket
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

from signer.client import Certificates, CurrentTLS
from signer.logs import OUTPUT
from signer.messages import read_requests, write_keys, write_outcomes
from signer.service import SigningService

logger = logging.getLogger(__name__)
_MAX_BODY_BYTES = 16 * 1024 * 1024
_MAX_TRANSACTIONS = 256
_IDLE_SECONDS = 300


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "signer", ""
    timeout = _IDLE_SECONDS
    # Buffered, because the second packet of an unbuffered response would wait for an acknowledgement.
    wbufsize = -1
    server: "Server"

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if self.path != "/sign" or not length.isdecimal() or int(length) > _MAX_BODY_BYTES:
            self._respond(400, b"")
            return
        try:
            requests = read_requests(self.rfile.read(int(length)))
            if len(requests) > _MAX_TRANSACTIONS:
                raise ValueError("too many transactions")
        except ValueError:
            self._respond(400, b"")
            return
        self._respond(200, write_outcomes(self.server.service.sign(requests, is_wanted=self._is_connected)))

    def _is_connected(self) -> bool:
        """Return whether the caller still waits. It sends one request at a time, so any input now is a disconnect."""
        events = select.poll()
        events.register(self.connection, select.POLLIN)
        return not events.poll(0)

    def do_GET(self) -> None:
        service = self.server.service
        if self.path == "/keys":
            self._respond(200, write_keys(service.keys()))
        elif self.path == "/chains":
            self._respond(200, json.dumps(service.chain_ids).encode())
        elif self.path == "/health":
            service.signed_ever()
            self._respond(200, b"ok\n", "text/plain")
        elif self.path == "/metrics":
            self._respond(200, _metrics(service).encode(), "text/plain; version=0.0.4")
        else:
            self._respond(404, b"")

    def _respond(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status != 200:
            # The request may not have been read completely.
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug(format, *args)

    def address_string(self) -> str:
        return str(self.client_address)


class Server(ThreadingMixIn, TCPServer):
    """Serves each connection in its own thread, until `shutdown`."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self, listen: str, service: SigningService, *, certificates: Certificates | None = None
    ) -> None:
        self.service = service
        self._tls: CurrentTLS | None = None
        scheme, _, place = listen.partition("://")
        address: Any
        if scheme == "unix":
            self.address_family = socket.AF_UNIX
            address = place
            # A killed process leaves its socket behind. The journal's lock prevents a second running signer.
            Path(place).unlink(missing_ok=True)
        else:
            if certificates is None:
                raise ValueError("TCP needs certificates of both sides")
            self._tls = CurrentTLS(certificates, is_server=True)
            host, _, port = place.rpartition(":")
            address = (host, int(port))
        super().__init__(address, _Handler)
        if scheme == "unix":
            # Only for the owner and the group, because every process that can connect can request signatures.
            Path(place).chmod(0o660)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Do the TLS handshake in the connection's own thread, so that a slow client delays no other."""
        if self._tls is not None:
            request.settimeout(10)
            if not request.recv(1, socket.MSG_PEEK):
                return  # A probe connects and sends nothing.
            request = self._tls().wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a warning: a client that disconnects or has no certificate is not an error of the signer."""
        logger.warning("a connection ended early", exc_info=logger.isEnabledFor(logging.DEBUG))


def _metrics(service: SigningService) -> str:
    lines = ["# TYPE signer_requests_total counter"]
    lines += [
        f'signer_requests_total{{outcome="{outcome}"}} {count}'
        for outcome, count in sorted(service.counts.items())
    ]
    lines.append("# TYPE signer_spent gauge")
    home, *_ = service.chain_ids
    for account, amount in service.spent().items():
        # As the service's metrics: the label of a chain, which home has not.
        chain = "" if account.chain_id == home else f',chain="{account.chain_id}"'
        lines.append(f'signer_spent{{address="{account.address}"{chain}}} {amount}')
    lines += [
        "# TYPE signer_log_lines_dropped_total counter",
        f"signer_log_lines_dropped_total {OUTPUT.dropped}",
    ]
    lines += ["# TYPE signer_journal_entries gauge", f"signer_journal_entries {service.signed_ever()}"]
    lines += ["# TYPE signer_journal_bytes gauge", f"signer_journal_bytes {service.journal_bytes()}"]
    return "\n".join(lines) + "\n"
