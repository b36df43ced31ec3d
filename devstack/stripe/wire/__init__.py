"""Stripe's HTTP: forms in, JSON out."""
