"""An external identity provider: its keys, its tokens, and the URL at which it publishes the keys."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import jwt
from django.utils.timezone import now
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.users.private_keys import ec_key, rsa_key


class ExternalIssuer:
    """Signs with an EC and an RSA key, and serves `document`."""

    name = "https://id.example/"
    audience = "relay"

    def __init__(self) -> None:
        self.ec, self.rsa = ec_key(), rsa_key()
        self.document: Any = {"keys": self.keys}
        self.status = 200
        self.url = ""
        self.requests = 0

    @property
    def keys(self) -> list[dict[str, Any]]:
        """The public keys as a provider lists them."""
        return [
            {**ECAlgorithm.to_jwk(self.ec.public_key(), as_dict=True), "kid": "ec", "use": "sig"},
            {**RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True), "kid": "rsa"},
        ]

    def token(self, *, algorithm: str = "ES256", kid: str = "ec", key: Any = None, **changes: Any) -> str:
        """Return a token for us, with changes."""
        claims = {
            "iss": self.name,
            "aud": self.audience,
            "exp": int((now() + timedelta(minutes=5)).timestamp()),
            **changes,
        }
        signing_key = key or (self.rsa if algorithm.startswith("RS") else self.ec)
        return jwt.encode(claims, signing_key, algorithm=algorithm, headers={"kid": kid})

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Publish the document at `url`."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests += 1
                self.send_response(issuer.status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()
                document = issuer.document
                self.wfile.write(document if isinstance(document, bytes) else json.dumps(document).encode())

            def log_message(self, *_: Any) -> None:
                """Keep quiet."""

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}/jwks.json"
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
