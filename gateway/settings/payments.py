"""Payments by Stripe."""

from gateway.common import env

# Without a key the payment paths answer 503 and everything else works.
STRIPE_SECRET_KEY = env.secret("STRIPE_SECRET_KEY", default="")
# Two while the endpoint's secret is being rotated.
STRIPE_WEBHOOK_SECRETS = env.secrets("STRIPE_WEBHOOK_SECRETS", default="")
STRIPE_API_BASE = env.base_url("STRIPE_API_BASE", default="https://api.stripe.com")
STRIPE_TIMEOUT_SECONDS = env.integer("STRIPE_TIMEOUT_SECONDS", default=10, minimum=1)
STRIPE_PRODUCT_ID = env.optional("STRIPE_PRODUCT_ID", "credit-relay-subscription")
BILLING_CURRENCIES = env.listing("BILLING_CURRENCIES", default=("usd", "eur", "gbp", "chf"))
BILLING_MAX_AMOUNT_MINOR = env.integer("BILLING_MAX_AMOUNT_MINOR", default=1_000_000, minimum=100)
BILLING_RATE = env.rate("BILLING_RATE", "60/minute")
