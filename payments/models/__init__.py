"""
Payments: customers and subscriptions at Stripe, commands to Stripe, Stripe's events, and payouts.

Rows of customers, subscriptions, payouts and clawbacks are written only from data just read from Stripe.
"""

from payments.models.customers import Customer
from payments.models.events import BillingOperation, StripeEvent
from payments.models.payouts import Clawback, FurtherPayment, Payout, PeriodTotals
from payments.models.purchases import AutoTopUp, CreditPack, Purchase
from payments.models.rates import PayoutRate
from payments.models.refunds import MoneyReturn, Refund
from payments.models.subscriptions import Settlement, Subscription

__all__ = [
    "AutoTopUp",
    "BillingOperation",
    "Clawback",
    "CreditPack",
    "Customer",
    "FurtherPayment",
    "MoneyReturn",
    "Payout",
    "PayoutRate",
    "PeriodTotals",
    "Purchase",
    "Refund",
    "Settlement",
    "StripeEvent",
    "Subscription",
]
