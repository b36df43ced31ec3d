"""A subscription before anything has happened to it."""

from devstack.stripe.state.things import Thing
from devstack.stripe.wire.lists import whole_list

_NOTHING = (
    "application", "application_fee_percent", "billing_cycle_anchor_config", "billing_thresholds", "cancel_at",
    "canceled_at", "customer_account", "days_until_due", "default_payment_method", "default_source", "description",
    "ended_at", "latest_invoice", "next_pending_invoice_item_invoice", "on_behalf_of", "pause_collection",
    "pending_invoice_item_interval", "pending_setup_intent", "pending_update", "schedule", "status_details",
    "test_clock", "transfer_data", "trial_end", "trial_start",
)  # fmt: skip


def blank_subscription(identifier: str, customer: str, currency: str, items: list[Thing], now: int) -> Thing:
    """Return a subscription that waits for its first payment."""
    return {
        "object": "subscription",
        "id": identifier,
        **dict.fromkeys(_NOTHING),
        "automatic_tax": {"disabled_reason": None, "enabled": False, "liability": None},
        "billing_cycle_anchor": now,
        "billing_schedules": [],
        "cancel_at_period_end": False,
        "cancellation_details": dict.fromkeys(("comment", "feedback", "reason")),
        "collection_method": "charge_automatically",
        "created": now,
        "currency": currency,
        "customer": customer,
        "default_tax_rates": [],
        "discounts": [],
        "invoice_settings": {"account_tax_ids": None, "issuer": {"type": "self"}},
        "items": whole_list(items, f"/v1/subscription_items?subscription={identifier}"),
        "livemode": False,
        "metadata": {},
        "payment_settings": {
            "payment_method_options": None,
            "payment_method_types": None,
            "save_default_payment_method": "off",
        },
        "start_date": now,
        "status": "incomplete",
        "trial_settings": {"end_behavior": {"missing_payment_method": "create_invoice"}},
        "_period": 0,
        "_pending": [],
    }
