"""The seam to Stripe."""
