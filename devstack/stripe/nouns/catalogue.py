"""Every operation under `/v1`."""

from devstack.stripe.nouns import (
    charges,
    credit_notes,
    customers,
    disputes,
    events,
    invoice_payments,
    invoices,
    payment_intents,
    payment_methods,
    prices,
    products,
    refunds,
    setup_intents,
    subscriptions,
    webhook_endpoints,
)
from devstack.stripe.wire.routes import Routes

_NOUNS = (
    charges, credit_notes, customers, disputes, events, invoice_payments, invoices, payment_intents, payment_methods,
    prices, products, refunds, setup_intents, subscriptions, webhook_endpoints,
)  # fmt: skip
OPERATIONS = Routes([route for noun in _NOUNS for route in noun.ROUTES])
