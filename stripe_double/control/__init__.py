"""The control API under `/_control`: time, faults, and what happens outside of the API."""
