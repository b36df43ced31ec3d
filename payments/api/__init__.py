"""The HTTP API of payments: endpoints for wallets, and the webhook for Stripe."""
