"""An endpoint that receives webhooks and verifies their signatures."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import stripe


@dataclass(frozen=True)
class Post:
    """One POST: its raw body, the signature header, and whether the SDK accepts both."""

    body: bytes
    signature: str | None
    accepted: bool

    @property
    def event(self) -> dict[str, Any]:
        """The event in the body."""
        event: dict[str, Any] = json.loads(self.body)
        return event


class WebhookReceiver:
    """Collects webhooks; responds with 200 if the signature is valid, unless `status_for` is set."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.posts: list[Post] = []
        self.status_for: Callable[[Post], int] = lambda post: 200 if post.accepted else 400
        self.url = ""

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of posts with valid signatures, in order of arrival."""
        return [post.event for post in self.posts if post.accepted]

    @property
    def types(self) -> list[str]:
        """Their types."""
        return [event["type"] for event in self.events]

    def clear(self) -> None:
        """Clear the received posts and reset the responses."""
        self.posts.clear()
        self.status_for = lambda post: 200 if post.accepted else 400

    def receive(self, body: bytes, signature: str | None) -> int:
        """Record a post and return the status of the response."""
        post = Post(body, signature, self._accepts(body, signature))
        self.posts.append(post)
        return self.status_for(post)

    def _accepts(self, body: bytes, signature: str | None) -> bool:
        try:
            stripe.Webhook.construct_event(body, signature or "", self.secret)
        except (stripe.SignatureVerificationError, ValueError):
            return False
        return True


@contextmanager
def receive_webhooks(secret: str) -> Iterator[WebhookReceiver]:
    """Listen for webhooks during the block."""
    webhooks = WebhookReceiver(secret)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(webhooks.receive(body, self.headers.get("Stripe-Signature")))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    webhooks.url = f"http://127.0.0.1:{server.server_address[1]}/webhooks/stripe"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield webhooks
    finally:
        server.shutdown()
        server.server_close()
