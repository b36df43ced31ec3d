"""The services of payments, against the Stripe double."""
