"""
Ad networks as a demo has them: all enabled, with secrets and tokens of this start.

Runs in a process with the service's settings.
"""

import secrets
from datetime import datetime
from decimal import Decimal
from typing import Any

from devstack.ad_networks.dialects import AD_UNIT

# Credits per unit that the network tells.
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
# What the service asks of a network whose signature leaves the amount out, and of one that signs for everybody.
_GUARDS: dict[str, dict[str, Any]] = {
    "cpx-research": {
        "allowed_addresses": ["127.0.0.1", "::1"],
        "per_event_cap": 5_000,
        "daily_cap": 20_000,
        "hold_hours": 24,
    },
    "admob": {"allowed_ad_units": [AD_UNIT]},
}


def open_networks(*, now: datetime) -> dict[str, dict[str, Any]]:
    """
    Return token, secret, rate, kind and hours of hold by slug, and read AdMob's verifier keys.

    The first call enables every network; what staff change later stays. Every call
    gives out new tokens and secrets, and the secrets of the call before stay live.
    """
    from earnings.networks import ADAPTERS
    from earnings.services import networks

    opened = {slug: _open(slug, now=now) for slug in ADAPTERS}
    networks.refresh_verifier_keys(now=now)
    return opened


def _open(slug: str, *, now: datetime) -> dict[str, Any]:
    from earnings.networks import ADAPTERS
    from earnings.services import networks

    adapter, secret = ADAPTERS[slug], secrets.token_urlsafe(24)
    row = networks.ensure(slug=slug)
    is_new = not row.path_token_hash
    token = networks.issue_path_token(slug=slug)
    if adapter.needs_secret:
        networks.set_secret(slug=slug, secret=secret, now=now)
    # Data of an older service know no ad units, and AdMob is off there.
    if is_new or (adapter.signs_for_all and not row.allowed_ad_units):
        guards = _GUARDS.get(slug, {})
        row = networks.configure(slug=slug, is_enabled=True, rate=Decimal(_RATES[slug]), **guards)
    return {
        "token": token if adapter.has_path_token else "",
        "secret": secret if adapter.needs_secret else "",
        "rate": f"{row.rate.normalize():f}",
        "kind": str(adapter.kind),
        "hold_hours": row.hold_hours,
    }
