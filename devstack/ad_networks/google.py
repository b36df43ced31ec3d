"""Google's list of verifier keys, as AdMob publishes it: one key pair per start, its public half over HTTP."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from devstack.ad_networks.dialects import KEY_ID


@dataclass(frozen=True)
class VerifierKeys:
    """Where the list is read, and the private key in PEM that AdMob signs with."""

    url: str
    private_key: str = field(repr=False)


@contextmanager
def serving_verifier_keys() -> Iterator[VerifierKeys]:
    """Serve the list of a new key on a free port for the length of the block."""
    key = generate_private_key(SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    content = json.dumps({"keys": [{"keyId": int(KEY_ID), "pem": public}]}).encode()

    class Listing(BaseHTTPRequestHandler):
        """The same answer to every question."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Listing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield VerifierKeys(f"http://127.0.0.1:{server.server_port}/verifier-keys.json", private)
        finally:
            server.shutdown()
