"""Every operation under `/v1`."""

from devstack.stripe.billing import customers, invoices, payment_intents, subscriptions
from devstack.stripe.resources import (
    charges,
    disputes,
    events,
    payment_methods,
    prices,
    products,
    refunds,
    setup_intents,
)

_MODULES = (
    charges, customers, disputes, events, invoices, payment_intents, payment_methods,
    prices, products, refunds, setup_intents, subscriptions,
)  # fmt: skip
OPERATIONS = tuple(route for module in _MODULES for route in module.ROUTES)
