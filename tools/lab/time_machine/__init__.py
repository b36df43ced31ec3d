"""Months of the whole running product in minutes: one clock for service, database, chain and Stripe's double."""
