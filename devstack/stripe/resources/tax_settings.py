"""The settings of automatic tax: it is always switched on."""

from typing import Any

from devstack.stripe.account import Account
from devstack.stripe.parameters import takes
from devstack.stripe.routing import Route
from devstack.stripe.store import Resource


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
