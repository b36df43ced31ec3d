"""The HTTP API of sign-in."""
