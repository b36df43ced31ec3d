"""The settings of automatic tax, which is always enabled."""

from typing import Any

from stripe_double.account import Account
from stripe_double.parameters import takes
from stripe_double.routing import Route
from stripe_double.store import Resource


def retrieve(_account: Account, _params: dict[str, Any]) -> Resource:
    """Return the settings."""
    return {
        "object": "tax.settings",
        "defaults": {"provider": "stripe", "tax_behavior": "exclusive", "tax_code": "txcd_10000000"},
        "head_office": None,
        "livemode": False,
        "status": "active",
        "status_details": {"active": {}},
    }


ROUTES = (Route("GET", "/v1/tax/settings", retrieve, takes()),)
