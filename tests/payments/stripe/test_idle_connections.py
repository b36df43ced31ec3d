"""A connection to Stripe that was idle is not used again: a firewall may have forgotten it without a reset."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from payments.stripe.requests import IDLE_SECONDS, GuardedClient


def test_a_connection_is_used_again_at_once_and_not_after_it_was_idle() -> None:
    ports: list[int] = []

    class Responding(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            ports.append(self.client_address[1])
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    with ThreadingHTTPServer(("127.0.0.1", 0), Responding) as server:
        server.daemon_threads, server.block_on_close = True, False
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        client = GuardedClient(timeout_seconds=30, places=1)
        for idle_seconds in (0.0, -3600.0, IDLE_SECONDS + 1):
            if ports:
                client._thread.used_at -= idle_seconds
            client.request("get", f"http://127.0.0.1:{server.server_address[1]}/", {}, None)
        client.close()  # type: ignore[no-untyped-call]
        server.shutdown()
    assert ports[0] == ports[1] != ports[2]
