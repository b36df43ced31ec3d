"""The check-in on the wire."""
