"""HTTP: requests with Stripe's bracketed forms, JSON responses, and a server with a thread per connection."""

import json
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from stripe_double.errors import InvalidParameters, StripeError, server_error

_FIELD_NAME = re.compile(r"^([^\[\]]+)((?:\[[^\[\]]*\])*)$")
Form = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """A request; header names are in lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> Form:
        """The parameters, from the query and the body."""
        return parse_form(self.query) | parse_form(self.body.decode(errors="replace"))

    @property
    def query_params(self) -> dict[str, str]:
        """The query as plain names and values."""
        return dict(parse_qsl(self.query))

    @property
    def api_key(self) -> str:
        """The key of the bearer authorization."""
        return self.headers.get("authorization", "").removeprefix("Bearer ").strip()

    @property
    def idempotency_key(self) -> str | None:
        """The idempotency key; only a POST has one."""
        return self.headers.get("idempotency-key") if self.method == "POST" else None


@dataclass(frozen=True)
class Response:
    """A body as JSON or text; or, with `drop_connection`, no response."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)
    drop_connection: bool = False
    content_type: str = "application/json"


def error_response(error: StripeError) -> Response:
    """Return the response of an error."""
    return Response(error.status, {"error": error.error})


def parse_form(text: str) -> Form:
    """Return the nested values of `a[b][0]=c`; lists become objects with indexes as names."""
    form: Form = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        match = _FIELD_NAME.match(name)
        if match is None:
            raise InvalidParameters(f"Invalid parameter name: {name}")
        _set(form, [match[1], *re.findall(r"\[([^\[\]]*)\]", match[2])], value, name)
    return form


def _set(form: Form, path: list[str], value: str, name: str) -> None:
    node = form
    for key in path[:-1]:
        node = node.setdefault(key or str(len(node)), {})
        if not isinstance(node, dict):
            message = f"Invalid parameter: {name} is both a value and an object."
            raise InvalidParameters(message, param=path[0])
    node[path[-1] or str(len(node))] = value


Application = Callable[[Request], Response]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    application: Application

    def do_any(self) -> None:
        """Send the response, or drop the connection."""
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, url.path, url.query, headers, body)
        try:
            response = type(self).application(request)
        except Exception:  # noqa: BLE001 (logged, and the response is 500)
            traceback.print_exc()
            response = error_response(server_error(500))
        if response.drop_connection:
            self.close_connection = True
            return
        self._send(response)

    do_GET = do_POST = do_DELETE = do_any  # noqa: N815 (names of the standard library)

    def log_message(self, format: str, *args: object) -> None:
        """Log only errors."""

    def _send(self, response: Response) -> None:
        is_text = isinstance(response.body, str)
        content = (response.body if is_text else json.dumps(response.body)).encode()
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(content)))
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class HttpServer(ThreadingHTTPServer):
    """Listens on a port."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, application: Application) -> None:
        handler = type("Handler", (_Handler,), {"application": staticmethod(application)})
        super().__init__((host, port), handler)

    @property
    def url(self) -> str:
        """The base URL for clients."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"
