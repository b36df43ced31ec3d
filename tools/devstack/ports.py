"""
Ports of the loopback interface.

`python -m devstack.ports PORT` runs before anything is installed, so this needs only Python.
"""

import errno
import fcntl
import os
import secrets
import socket
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

_PORTS = range(10_000, 32_000)
# The ports given out to this process.
_given: set[int] = set()


class NoPort(RuntimeError):
    """The port cannot be used."""


def free_port(preferred: int = 0) -> int:
    """
    Return an unused loopback port, the preferred one if it is free.

    The port is random, below the kernel's ephemeral range: otherwise an outgoing connection could take it before its
    server has started or while it is stopped. It is given out once, and to no other process of ours before this one has
    ended.
    """
    others = [port for port in secrets.SystemRandom().sample(_PORTS, 100) if port not in _given]
    for port in filter(None, (preferred, *others)):
        with suppress(OSError):
            _bind(port)
            fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            _given.add(port)
            return port
    raise NoPort("No port of the loopback interface is free.")


@cache
def _claims() -> int:
    """Open the lock file; the lock on byte N reserves port N."""
    path = Path(tempfile.gettempdir()) / f"gateway-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def require_free_port(text: str) -> int:
    """Return the port; raise `NoPort` if it is none, or if another program listens on it."""
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**16):
        raise NoPort(f"{text} is not a port. Choose another one: make run PORT={free_port()}")
    try:
        _bind(int(text))
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        reason = "is used by another program" if is_taken else f"cannot be used: {error.strerror}"
        raise NoPort(f"Port {text} {reason}. Choose another one: make run PORT={free_port()}") from error
    return int(text)


def _bind(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


if __name__ == "__main__":
    try:
        require_free_port(sys.argv[1])
    except NoPort as refusal:
        sys.exit(f"✗ {refusal}")
