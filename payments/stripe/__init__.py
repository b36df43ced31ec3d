"""The one place that speaks to Stripe."""
