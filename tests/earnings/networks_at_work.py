"""Networks that are set up in the records, and postbacks that they send to the service."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from devstack.ad_networks.dialects import AD_UNIT, KEY_ID, Told
from earnings.models import AdNetwork, VerifierKeySet
from earnings.networks import ADAPTERS
from earnings.networks.base import Answer, RawRequest
from earnings.services import networks, postbacks
from tests.earnings.networks.saying import key_pair, new_secret, request_of, told
from users.models import User

SENDER = "203.0.113.7"


@dataclass
class Network:
    """An enabled network and what it signs with."""

    slug: str
    secret: str
    token: str
    row: AdNetwork = field(repr=False)

    def reference(self, user: User) -> str:
        """Return the user's name at this network."""
        return networks.reference_of(user=user, network=self.row)

    def says(self, user: User, /, **changes: Any) -> Told:
        """Return an earning of the user, told now."""
        return told(**{"user": self.reference(user), "at": timezone.now(), **changes})

    def request(self, what: Told, **changes: Any) -> RawRequest:
        """Return the request that tells it."""
        url = f"http://testserver/api/postbacks/{self.slug}/{self.token}"
        given = {"sender": SENDER, **changes}
        return request_of(self.slug, what, self.secret, url=url, token=self.token, **given)

    def sends(self, what: Told, *, now: datetime | None = None, **changes: Any) -> Answer:
        """Let the service hear it and return its answer."""
        return postbacks.receive(
            slug=self.slug, request=self.request(what, **changes), now=now or timezone.now()
        )


def set_up(slug: str, **values: Any) -> Network:
    """Enable a network with fresh secrets; a weak one with everything that it must have."""
    secret = new_secret(slug)
    if ADAPTERS[slug].needs_secret:
        networks.set_secret(slug=slug, secret=secret, now=timezone.now())
    elif slug == "admob":
        keys = {KEY_ID: key_pair()[1]}
        VerifierKeySet.objects.update_or_create(
            slug=slug, defaults={"keys": keys, "fetched_at": timezone.now()}
        )
    token = networks.issue_path_token(slug=slug)
    guards: dict[str, dict[str, Any]] = {
        "cpx-research": {
            "allowed_addresses": [SENDER],
            "per_event_cap": 10**6,
            "daily_cap": 10**7,
            "hold_hours": 1,
        },
        "admob": {"allowed_ad_units": [AD_UNIT]},
    }
    row = networks.configure(slug=slug, **{**guards.get(slug, {}), "is_enabled": True, **values})
    return Network(slug, secret, token, row)


def random_id() -> str:
    """Return an id that no network has used."""
    return secrets.token_hex(10)
