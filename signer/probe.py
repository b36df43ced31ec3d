"""
`python -I signer/probe.py`: exit 0 if the signer at the socket of SIGNER_LISTEN reports that its journal is readable.

For a container's health check, which runs every few seconds. This file imports only sockets, while `python -m signer`
takes a second of CPU time to load, and the package alone takes three times as long as this file.
"""

import os
import socket
import sys

_SECONDS = 5.0


def main(listen: str) -> int:
    """Return 0 if the signer at `unix:///path` returns 200, else 1; print why it does not."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SECONDS)
            connection.connect(listen.removeprefix("unix://"))
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: signer\r\nConnection: close\r\n\r\n")
            status = connection.makefile("rb").readline()
    except OSError as error:
        sys.stderr.write(f"The signer does not respond: {type(error).__name__}\n")
        return 1
    if status.split()[1:2] == [b"200"]:
        return 0
    sys.stderr.write(f"The signer responds with {status!r}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(os.environ.get("SIGNER_LISTEN", "")))
