"""The control API under `/_control`: time, faults, and events outside of Stripe's API."""
