"""Requests from granian's RSGI interface: their environ for Django, and their bodies."""

import asyncio
import functools
import sys
from io import BytesIO
from typing import TYPE_CHECKING, Any

from django.conf import settings

if TYPE_CHECKING:
    from granian._granian import RSGIHTTPProtocol as HTTPProtocol
    from granian.rsgi import Scope

# How many bytes of a refused body to read, so that the client can receive the error response.
_MAX_SKIPPED_BYTES = 32 * 1024 * 1024


def environ_of(scope: "Scope") -> dict[str, Any]:
    """
    Return the request's WSGI environ without its body.

    Headers with an underscore are dropped: X_Forwarded_For, which proxies pass on, would be read as X-Forwarded-For.
    """
    client, _, _ = scope.client.rpartition(":")
    server, _, port = scope.server.rpartition(":")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string.encode().decode("latin-1"),
        "REMOTE_ADDR": client.strip("[]"),
        "SERVER_NAME": server,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope.headers.items():
        key = _key_of(name)
        if key is not None and key not in environ:
            environ[key] = value
        elif key is not None and key != "CONTENT_LENGTH":
            environ[key] += (";" if key == "HTTP_COOKIE" else ",") + value
    # The server omits values that are not ASCII. Such a header must not appear to be absent.
    for name in scope.headers.keys():  # noqa: SIM118 - RSGI promises keys(), not iteration
        key = _key_of(name)
        if key is not None:
            environ.setdefault(key, "")
    return environ


@functools.lru_cache(maxsize=256)
def _key_of(name: str) -> str | None:
    if "_" in name:
        return None
    key = name.upper().replace("-", "_")
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


async def read_body(protocol: "HTTPProtocol", length: int) -> bytes:
    """Read the body; it is shorter than `length` if the client disconnected."""
    chunks, missing = [], length
    async for chunk in protocol:
        chunks.append(chunk)
        missing -= len(chunk)
        if missing <= 0:
            break
    return b"".join(chunks)


async def skip_body(protocol: "HTTPProtocol") -> None:
    """
    Read the rest of a refused body after the response was sent.

    Closing a connection while the client still sends resets it, and many clients then lose the response.
    """
    left = _MAX_SKIPPED_BYTES
    try:
        async with asyncio.timeout(settings.WEB_BODY_SECONDS):
            async for chunk in protocol:
                left -= len(chunk)
                if left < 0:
                    return
    except TimeoutError:
        return
