"""Every operation under `/v1`."""

from stripe_double.billing import (
    credit_notes,
    customers,
    discounts,
    invoice_items,
    invoices,
    payment_intents,
    schedules,
    subscriptions,
    test_clocks,
)
from stripe_double.resources import (
    balance,
    charges,
    disputes,
    events,
    fraud_warnings,
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
    balance, charges, credit_notes, customers, discounts, disputes, events, fraud_warnings, invoice_items, invoices,
    payment_intents, payment_methods, prices, products, refunds, schedules, sessions, setup_intents, subscriptions,
    test_clocks, tax_settings, webhook_endpoints,
)  # fmt: skip
OPERATIONS = tuple(route for module in _MODULES for route in module.ROUTES)
