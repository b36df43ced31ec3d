"""A setup intent before a card is set up with it."""

from typing import Any

from devstack.stripe.state.things import Thing, new_id

_NOTHING = (
    "application", "cancellation_reason", "flow_directions", "last_setup_error", "latest_attempt", "mandate",
    "next_action", "on_behalf_of", "payment_method", "payment_method_configuration_details",
    "payment_method_options", "single_use_mandate",
)  # fmt: skip


def blank_setup(now: int, params: dict[str, Any]) -> Thing:
    """Return a setup intent; it takes every kind of card unless the kinds are named."""
    identifier = new_id("seti")
    automatic = params.get("automatic_payment_methods", {"enabled": "payment_method_types" not in params})
    return {
        "object": "setup_intent",
        "id": identifier,
        **dict.fromkeys(_NOTHING),
        "automatic_payment_methods": {"allow_redirects": "always", **automatic}
        if automatic["enabled"]
        else None,
        "client_secret": f"{identifier}_{new_id('secret')}",
        "created": now,
        "customer": params.get("customer"),
        "description": params.get("description"),
        "livemode": False,
        "metadata": params.get("metadata") or {},
        "payment_method_types": params.get("payment_method_types", ["card"]),
        "status": "requires_payment_method",
        "usage": params.get("usage", "off_session"),
    }
