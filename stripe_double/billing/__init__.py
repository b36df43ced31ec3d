"""Stripe Billing: customers, subscriptions and invoices, and what it does with them by itself."""
