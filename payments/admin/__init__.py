"""What support and finance see of payments, and what they do about them, each through its service."""

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
