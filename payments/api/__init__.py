"""The HTTP API of payments: paths for wallets, one for Stripe."""
