"""The admin of payments for support and finance; each action calls a service."""

from gateway.admin import navigation
from payments.admin import refunds, rows

__all__ = ["refunds", "rows"]

navigation.register(
    "Payments",
    {
        "payments.Customer": "badge",
        "payments.Subscription": "autorenew",
        "payments.Payout": "payments",
        "payments.Refund": "currency_exchange",
        "payments.Clawback": "undo",
        "payments.StripeEvent": "inbox",
        "payments.BillingOperation": "pending_actions",
        "payments.PayoutRate": "price_change",
    },
)
