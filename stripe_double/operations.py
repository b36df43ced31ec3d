"""Every operation under `/v1`."""

from stripe_double.billing import customers, invoices, payment_intents, subscriptions, test_clocks
from stripe_double.resources import (
    charges,
    disputes,
    events,
    payment_methods,
    prices,
    products,
    refunds,
    sessions,
    setup_intents,
    tax_settings,
    webhook_endpoints,
)

_MODULES = (
    charges, customers, disputes, events, invoices, payment_intents, payment_methods,
    prices, products, refunds, sessions, setup_intents, subscriptions,
    test_clocks, tax_settings, webhook_endpoints,
)  # fmt: skip
OPERATIONS = tuple(route for module in _MODULES for route in module.ROUTES)
