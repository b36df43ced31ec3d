"""The doors of payments: four paths for wallets, one for Stripe."""
