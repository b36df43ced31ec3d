"""The check-in's API."""
