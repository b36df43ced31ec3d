"""
A stub of AWS KMS. Like the real one it hashes messages by default, and half of its signatures have a high s.

`python -m devstack.kms PORT FILE` serves the keys of a JSON file, which maps ids to private keys in hex.
"""

import base64
import json
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    Prehashed,
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from devstack.files import read_json
from signer.transactions import CURVE_ORDER


class Kms(ThreadingHTTPServer):
    """Keys by id; while `broken` is set, every request gets a server error."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.keys: dict[str, ec.EllipticCurvePrivateKey] = {}
        self.is_broken = False
        self.has_ended = False
        self.operations: list[str] = []

    def new_key(self, curve: ec.EllipticCurve | None = None) -> str:
        """Return the id of a new key."""
        name = secrets.token_hex(8)
        self.keys[name] = ec.generate_private_key(curve or ec.SECP256K1())
        return name

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, operation: str, wanted: dict[str, Any]) -> dict[str, str]:
        """Return the operation's result, with bytes in base64."""
        self.operations.append(operation)
        key = self.keys[wanted["KeyId"]]
        if operation == "TrentService.GetPublicKey":
            spki = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            return {"KeyId": wanted["KeyId"], "PublicKey": base64.b64encode(spki).decode()}
        message = base64.b64decode(wanted["Message"])
        if wanted.get("MessageType", "RAW") == "RAW":
            message = sha256(message).digest()
        r, s = decode_dss_signature(key.sign(message, ec.ECDSA(Prehashed(SHA256()))))
        if secrets.randbits(1):
            s = CURVE_ORDER - s
        return {"Signature": base64.b64encode(encode_dss_signature(r, s)).decode()}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without it, the second packet of a response would wait for an acknowledgement (Nagle).
    wbufsize = -1
    server: Kms

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.has_ended:
            # Connections stay open after the listening socket is closed.
            self.close_connection = True
        elif self.server.is_broken:
            self._send(400, {"__type": "KMSInternalException"})
        else:
            self._send(200, self.server.answer(self.headers["X-Amz-Target"], body))

    def _send(self, status: int, body: dict[str, str]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def kms(port: int = 0) -> Iterator[Kms]:
    """Run the stub."""
    with Kms(port) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.has_ended = True
            server.shutdown()
            thread.join()


def _serve(port: int, keys: Path) -> None:
    with Kms(port) as server:
        for name, secret in read_json(keys).items():
            server.keys[name] = ec.derive_private_key(int(secret, 16), ec.SECP256K1())
        server.serve_forever()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), Path(sys.argv[2]))
