"""Doors of the credits app over HTTP."""
