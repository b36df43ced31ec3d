"""The addresses that events are sent to."""

import secrets

from devstack.stripe.state.account import API_VERSION, Account
from devstack.stripe.state.things import Thing, new_id

_CONFIGURED = "we_configured"


def make_endpoint(account: Account, url: str, events: list[str], *, identifier: str | None = None) -> Thing:
    """Send these events to the URL from now on."""
    return account.add(
        {
            "object": "webhook_endpoint",
            "id": identifier or new_id("we"),
            "api_version": API_VERSION,
            "application": None,
            "created": account.now,
            "description": None,
            "enabled_events": events,
            "livemode": False,
            "metadata": {},
            "status": "enabled",
            "url": url,
            "_secret": f"whsec_{secrets.token_hex(24)}",
        }
    )


def configure(account: Account, url: str, secret: str) -> Thing:
    """Send every event to the URL, signed with the secret; a second call moves the same endpoint."""
    endpoint = account.store.get("webhook_endpoint", _CONFIGURED)
    endpoint = endpoint or make_endpoint(account, url, ["*"], identifier=_CONFIGURED)
    endpoint.update(url=url, _secret=secret, status="enabled")
    return endpoint
