"""
The demo's ad networks: all enabled, with new secrets and tokens at each start, and AdMob's verifier keys over HTTP.

`enable_networks` runs in a process with the service's settings.
"""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from devstack.ad_networks.signing import AD_UNIT, KEY_ID, new_key_pair


@dataclass(frozen=True)
class VerifierKeys:
    """The URL of the list, and the private key in PEM that AdMob signs with."""

    url: str
    private_key: str = field(repr=False)


@contextmanager
def serve_verifier_keys(host: str = "127.0.0.1") -> Iterator[VerifierKeys]:
    """Serve the list with a new key on a free port during the block."""
    private, public = new_key_pair()
    content = json.dumps({"keys": [{"keyId": int(KEY_ID), "pem": public}]}).encode()

    class Listing(BaseHTTPRequestHandler):
        """Responds to every request with the list."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer((host, 0), Listing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield VerifierKeys(f"http://{host}:{server.server_port}/verifier-keys.json", private)
        finally:
            server.shutdown()


# Credits per unit of the network's amount.
_RATES = {
    "admob": "2",
    "levelplay": "2.5",
    "tapjoy": "1.25",
    "adgem": "1",
    "ayet-studios": "1.1",
    "bitlabs": "0.75",
    "cpx-research": "1",
    "theoremreach": "3",
    "visit-link": "5",
    "push-report": "4",
}
# Required for a network whose signature does not cover the amount or is not specific to the publisher.
_LIMITS: dict[str, dict[str, Any]] = {
    "cpx-research": {
        "allowed_addresses": ["127.0.0.1", "::1"],
        "per_event_cap": 5_000,
        "daily_cap": 20_000,
        "hold_hours": 24,
    },
    "admob": {"allowed_ad_units": [AD_UNIT]},
    # One event of the journey lifts its user to the next badge.
    "adgem": {"per_event_cap": 10**7, "daily_cap": 10**7},
}


def enable_networks(*, now: datetime) -> dict[str, dict[str, Any]]:
    """
    Enable all networks, fetch AdMob's verifier keys, and return token, secret, rate, kind and hold hours by slug.

    Only the first call enables a network; later changes of staff stay. Every call issues new tokens and secrets; the
    previous secrets stay valid.
    """
    from earnings.networks import ADAPTERS
    from earnings.services import networks

    enabled = {slug: _enable(slug, now=now) for slug in ADAPTERS}
    networks.refresh_verifier_keys(now=now)
    return enabled


def _enable(slug: str, *, now: datetime) -> dict[str, Any]:
    from earnings.networks import ADAPTERS
    from earnings.services import networks

    adapter, secret = ADAPTERS[slug], secrets.token_urlsafe(24)
    row = networks.ensure(slug=slug)
    is_new = not row.path_token_hash
    token = networks.new_path_token()
    networks.accept_path_token(slug=slug, token_hash=networks.path_token_hash(token))
    if adapter.needs_secret:
        networks.set_sealed_secret(slug=slug, sealed=networks.sealed(secret), now=now)
    if is_new or (adapter.signs_for_all and not row.allowed_ad_units):
        limits = _LIMITS.get(slug, {})
        row = networks.configure(slug=slug, is_enabled=True, rate=Decimal(_RATES[slug]), **limits)
    return {
        "token": token if adapter.has_path_token else "",
        "secret": secret if adapter.needs_secret else "",
        "rate": f"{row.rate.normalize():f}",
        "kind": str(adapter.kind),
        "hold_hours": row.hold_hours,
    }
