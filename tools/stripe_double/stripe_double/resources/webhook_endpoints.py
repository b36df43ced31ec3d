"""The webhook endpoint (read-only); the control API sets it."""

from typing import Any

from stripe_double.account import API_VERSION, Account
from stripe_double.parameters import CURSORS, takes
from stripe_double.routing import Route, paginate
from stripe_double.store import Resource

_PATH = "/v1/webhook_endpoints"


def list_all(account: Account, params: dict[str, Any]) -> Resource:
    """Return the endpoint, which gets every event."""
    endpoints = [
        {
            "object": "webhook_endpoint",
            "id": "we_1DoubleEndpoint",
            "api_version": API_VERSION,
            "application": None,
            "created": 0,
            "description": None,
            "enabled_events": ["*"],
            "livemode": False,
            "metadata": {},
            "status": "enabled",
            "url": endpoint["url"],
        }
        for endpoint in account.store.all("_endpoint")
    ]
    return paginate(endpoints, params, _PATH)


ROUTES = (Route("GET", _PATH, list_all, takes(**CURSORS)),)
