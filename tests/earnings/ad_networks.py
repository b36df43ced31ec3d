"""Ad networks for tests: signed requests for an adapter alone, and enabled networks that send to the service."""

import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.utils import timezone

from devstack.ad_networks.signing import AD_UNIT, KEY_ID, SIGNERS, Reward, new_key_pair, sign
from earnings.models import AdNetwork, VerifierKeySet
from earnings.networks import ADAPTERS
from earnings.networks.base import PostbackEvent, PostbackResponse, RawRequest, is_weak
from earnings.services import networks, postbacks
from users.models import User

NOW = datetime(2026, 11, 21, 12, 34, tzinfo=UTC)
SLUGS = sorted(SIGNERS)
SENDER = "203.0.113.7"
WEAK = {slug for slug, adapter in ADAPTERS.items() if is_weak(adapter)}


def limits_of(slug: str, *, daily_cap: int = 10**7) -> dict[str, Any]:
    """Return the limits without which the network cannot be enabled."""
    if slug == "admob":
        return {"allowed_ad_units": [AD_UNIT]}
    if slug not in WEAK:
        return {}
    return {
        "allowed_addresses": [SENDER],
        "per_event_cap": 10**6,
        "daily_cap": daily_cap,
        "hold_hours": 1,
    }


@cache
def key_pair() -> tuple[str, str]:
    """Return the P-256 key pair of AdMob in this run as PEM: private, public."""
    return new_key_pair()


def new_secret(slug: str) -> str:
    """Return a secret of the kind that the network signs with."""
    return key_pair()[0] if slug == "admob" else secrets.token_hex(16)


def random_id() -> str:
    """Return an id that no network has used."""
    return secrets.token_hex(10)


def new_reward(**changes: Any) -> Reward:
    """Return a reward of an unknown user."""
    reward = Reward(
        external_id=random_id(),
        user=secrets.token_hex(16),
        amount=str(secrets.randbelow(900) + 1),
        at=NOW,
    )
    return replace(reward, **changes)


def request_of(
    slug: str, reward: Reward, secret: str, *, url: str = "", token: str = "", **changes: Any
) -> RawRequest:
    """Return the request by which the network reports it, to a new address unless one is given."""
    token = token or secrets.token_urlsafe(32)
    url = url or f"http://testserver/api/postbacks/{slug}/{token}"
    signed = sign(slug, reward, url=url, secret=secret)
    request = RawRequest(
        method="GET",
        url=url,
        query=signed.query.encode(),
        headers={name.lower(): value for name, value in signed.headers.items()},
        path_token=token if signed.path_token is None else signed.path_token,
    )
    return replace(request, **changes)


def parse(slug: str, request: RawRequest, *secrets: str) -> PostbackEvent:
    """Return the event that the network's adapter reads, without any row."""
    adapter = ADAPTERS[slug]
    keys = {} if adapter.needs_secret else {KEY_ID: key_pair()[1]}
    return adapter.parse(adapter.verify(request, secrets=secrets, keys=keys))


@dataclass
class Network:
    """An enabled network and what it signs with."""

    slug: str
    secret: str
    token: str
    row: AdNetwork = field(repr=False)

    def reference(self, user: User) -> str:
        """Return the user's reference at this network."""
        return networks.reference_of(user=user, network=self.row)

    def reward(self, user: User, /, **changes: Any) -> Reward:
        """Return a reward of the user, of now."""
        return new_reward(**{"user": self.reference(user), "at": timezone.now(), **changes})

    def request(self, reward: Reward, **changes: Any) -> RawRequest:
        """Return the request that reports it."""
        url = f"http://testserver/api/postbacks/{self.slug}/{self.token}"
        values = {"sender": SENDER, **changes}
        return request_of(self.slug, reward, self.secret, url=url, token=self.token, **values)

    def send(self, reward: Reward, *, now: datetime | None = None, **changes: Any) -> PostbackResponse:
        """Send it to the service and return the response."""
        return postbacks.receive(
            slug=self.slug, request=self.request(reward, **changes), now=now or timezone.now()
        )


def set_secret(*, slug: str, secret: str, now: datetime) -> None:
    """Have the network sign with another secret, too."""
    networks.set_sealed_secret(slug=slug, sealed=networks.sealed(secret), now=now)


def issue_path_token(*, slug: str) -> str:
    """Return a new token for the end of the network's address; the previous one is not accepted any more."""
    token = networks.new_path_token()
    networks.accept_path_token(slug=slug, token_hash=networks.path_token_hash(token))
    return token


def set_up(slug: str, **values: Any) -> Network:
    """Enable a network with fresh secrets; a weak one with all limits that it must have."""
    secret = new_secret(slug)
    if ADAPTERS[slug].needs_secret:
        set_secret(slug=slug, secret=secret, now=timezone.now())
    elif slug == "admob":
        keys = {KEY_ID: key_pair()[1]}
        VerifierKeySet.objects.update_or_create(
            slug=slug, defaults={"keys": keys, "fetched_at": timezone.now()}
        )
    token = issue_path_token(slug=slug)
    row = networks.configure(slug=slug, **{**limits_of(slug), "is_enabled": True, **values})
    return Network(slug, secret, token, row)
