"""The HTTP server: a thread per connection."""

import json
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from devstack.stripe.wire.exchange import Request, Response
from devstack.stripe.wire.faults import error_response

Answer = Callable[[Request], Response]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answer: Answer

    def do_any(self) -> None:
        """Answer the request, or break the connection off where the answer says so."""
        address = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, address.path, address.query, headers, body)
        try:
            response = type(self).answer(request)
        except Exception:  # noqa: BLE001 (a mistake of the double is answered, and told in the log)
            traceback.print_exc()
            response = error_response(500)
        if response.broken_off:
            self.close_connection = True
            return
        self._send(response)

    do_GET = do_POST = do_DELETE = do_any  # noqa: N815 (names of the standard library)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the log for what goes wrong."""

    def _send(self, response: Response) -> None:
        is_text = isinstance(response.body, str)
        content = (response.body if is_text else json.dumps(response.body, indent=2)).encode()
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(content)))
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class HttpServer(ThreadingHTTPServer):
    """Listens on a loopback port."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, answer: Answer) -> None:
        handler = type("Handler", (_Handler,), {"answer": staticmethod(answer)})
        super().__init__(("127.0.0.1", port), handler)

    @property
    def url(self) -> str:
        """The address to give to clients."""
        return f"http://127.0.0.1:{self.server_address[1]}"
