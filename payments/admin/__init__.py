"""The admin of payments for support and finance; each action calls a service."""

from gateway.admin import navigation
from payments.admin import packs, refunds, rows

__all__ = ["packs", "refunds", "rows"]

navigation.register(
    "Payments",
    {
        "payments.Customer": "badge",
        "payments.Subscription": "autorenew",
        "payments.Payout": "payments",
        "payments.Purchase": "shopping_cart",
        "payments.AutoTopUp": "event_repeat",
        "payments.Refund": "currency_exchange",
        "payments.Clawback": "undo",
        "payments.StripeEvent": "inbox",
        "payments.BillingOperation": "pending_actions",
        "payments.PayoutRate": "price_change",
        "payments.CreditPack": "inventory_2",
    },
)
