"""A hello-world on the product's own web server, as the baseline for its throughput."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from devstack.files import PROJECT
from devstack.ports import free_port
from devstack.services.server import Server, status_of
from lab.bench.stack import Stack, search_path

_BODY = b'{"hello": "world"}'
_HEADERS = (("content-type", "application/json"), ("content-length", str(len(_BODY))))
_INTERFACES = ("wsgi", "asgi", "rsgi")


def wsgi_application(_: Mapping[str, Any], start: Callable[..., object]) -> Iterable[bytes]:
    """Respond to every request with the same short body (WSGI)."""
    start("200 OK", list(_HEADERS))
    return [_BODY]


async def asgi_application(
    scope: Mapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Return the same (ASGI)."""
    if scope["type"] != "http":
        return
    headers = [(name.encode(), text.encode()) for name, text in _HEADERS]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": _BODY})


async def rsgi_application(_: Any, protocol: Any) -> None:
    """Return the same (granian's own interface)."""
    protocol.response_bytes(200, list(_HEADERS), _BODY)


class Hello(Server):
    """The web server of a stack, serving this application instead of the product."""

    name: ClassVar[str] = "hello"

    def __init__(self, log_directory: Path, stack: Stack) -> None:
        super().__init__(PROJECT, log_directory, {**stack.environment, "PYTHONPATH": search_path(PROJECT)})
        self._port = free_port()
        self._command = hello_command(stack.web_command(), port=self._port)

    def command(self) -> list[str]:
        """Return the stack's own command with another port and application."""
        return self._command

    def answers(self) -> bool:
        """Return whether it takes requests."""
        return status_of(self.url) == 200

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self._port}"


def hello_command(web_command: list[str], *, port: int) -> list[str]:
    """
    Return the command of a web server with another port and application.

    Raises:
        RuntimeError: the command does not name a port, an interface and, as its last argument, an application.
    """
    words = list(web_command)
    if {"--port", "--interface"} <= set(words) and re.fullmatch(r"[\w.]+:\w+", words[-1]):
        words[words.index("--port") + 1] = str(port)
        interface = words[words.index("--interface") + 1]
        if interface in _INTERFACES:
            return [*words[:-1], f"lab.bench.hello:{interface}_application"]
    raise RuntimeError(f"Cannot derive a hello-world command from {' '.join(words)}")
