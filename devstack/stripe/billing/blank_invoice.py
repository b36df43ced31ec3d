"""An invoice before anything is on it."""

from devstack.stripe.billing.lines import Period
from devstack.stripe.state.things import Thing

_NOTHING = (
    "account_name", "account_tax_ids", "application", "automatically_finalizes_at", "custom_fields", "customer_address",
    "customer_email", "customer_name", "customer_phone", "customer_shipping", "default_payment_method",
    "default_source", "description", "due_date", "effective_at", "ending_balance", "footer", "from_invoice",
    "hosted_invoice_url", "invoice_pdf", "last_finalization_error", "latest_revision", "next_payment_attempt",
    "number", "on_behalf_of", "parent", "receipt_number", "rendering", "shipping_cost", "shipping_details",
    "statement_descriptor", "status_details", "test_clock", "webhooks_delivered_at",
)  # fmt: skip
_ZERO = (
    "amount_due", "amount_overpaid", "amount_paid", "amount_paid_off_stripe", "amount_remaining", "amount_shipping",
    "attempt_count", "post_payment_credit_notes_amount", "pre_payment_credit_notes_amount", "starting_balance",
)  # fmt: skip


def blank_invoice(
    identifier: str, customer: Thing, currency: str, reason: str, period: Period, now: int
) -> Thing:
    """Return an invoice without lines."""
    return {
        "object": "invoice",
        "id": identifier,
        **dict.fromkeys(_ZERO, 0),
        **dict.fromkeys(_NOTHING),
        "account_country": "US",
        "attempted": False,
        "automatic_tax": {
            "disabled_reason": None,
            "enabled": False,
            "liability": None,
            "provider": None,
            "status": None,
        },
        "billing_reason": reason,
        "collection_method": "charge_automatically",
        "created": now,
        "currency": currency,
        "customer": customer["id"],
        "customer_email": customer["email"],
        "customer_name": customer["name"],
        "customer_tax_exempt": customer["tax_exempt"],
        "customer_tax_ids": [],
        "default_tax_rates": [],
        "discounts": [],
        "issuer": {"type": "self"},
        "livemode": False,
        "metadata": {},
        "payment_settings": dict.fromkeys(
            ("default_mandate", "payment_method_options", "payment_method_types")
        ),
        "period_start": period[0],
        "period_end": period[1],
        "status": "draft",
        "status_transitions": dict.fromkeys(
            ("finalized_at", "marked_uncollectible_at", "paid_at", "voided_at")
        ),
        "total_discount_amounts": [],
        "total_pretax_credit_amounts": [],
        "total_taxes": [],
    }
