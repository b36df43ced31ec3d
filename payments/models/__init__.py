"""Rows of payments: who pays, for what, what Stripe reported, what was paid out, and what was compared."""

from payments.models.clawbacks import Clawback
from payments.models.customers import Customer
from payments.models.events import StripeEvent
from payments.models.operations import BillingOperation
from payments.models.payouts import Payout
from payments.models.rates import PayoutRate
from payments.models.reconciliations import ReconciliationRun
from payments.models.subscriptions import Subscription

__all__ = [
    "BillingOperation",
    "Clawback",
    "Customer",
    "Payout",
    "PayoutRate",
    "ReconciliationRun",
    "StripeEvent",
    "Subscription",
]
