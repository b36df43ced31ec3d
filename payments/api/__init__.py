"""The HTTP API of payments: four paths for wallets, one for Stripe."""
