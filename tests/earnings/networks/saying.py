"""Postbacks to judge without any record: a network's dialect, and what its adapter makes of it."""

import secrets as random
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from devstack.ad_networks.dialects import DIALECTS, KEY_ID, Told, speak
from earnings.networks import ADAPTERS
from earnings.networks.base import PostbackEvent, RawRequest

NOW = datetime(2026, 11, 21, 12, 34, tzinfo=UTC)
SPOKEN = sorted(DIALECTS)


@cache
def key_pair() -> tuple[str, str]:
    """Return a P-256 key pair as PEM: private, public."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()


def new_secret(slug: str) -> str:
    """Return a secret of the kind that the network signs with."""
    return key_pair()[0] if slug == "admob" else random.token_hex(16)


def told(**changes: Any) -> Told:
    """Return an earning that nobody has heard of."""
    fresh = Told(
        external_id=random.token_hex(10),
        user=random.token_hex(16),
        amount=str(random.randbelow(900) + 1),
        at=NOW,
    )
    return replace(fresh, **changes)


def request_of(
    slug: str, what: Told, secret: str, *, url: str = "", token: str = "", **changes: Any
) -> RawRequest:
    """Return the request by which the network tells it, to an address of its own unless one is given."""
    token = token or random.token_urlsafe(32)
    url = url or f"http://testserver/api/postbacks/{slug}/{token}"
    sent = speak(slug, what, url=url, secret=secret)
    request = RawRequest(
        method="GET",
        url=url,
        query=sent.query.encode(),
        headers={name.lower(): value for name, value in sent.headers.items()},
        path_token=token if sent.path_token is None else sent.path_token,
    )
    return replace(request, **changes)


def heard(slug: str, request: RawRequest, *secrets: str) -> PostbackEvent:
    """Return what the network's adapter understands."""
    adapter = ADAPTERS[slug]
    keys = {} if adapter.needs_secret else {KEY_ID: key_pair()[1]}
    return adapter.parse(adapter.verify(request, secrets=secrets, keys=keys))
