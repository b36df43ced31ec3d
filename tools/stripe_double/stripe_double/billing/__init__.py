"""Stripe Billing: customers, subscriptions, invoices, and their scheduled changes."""
