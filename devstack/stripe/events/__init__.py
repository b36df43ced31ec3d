"""Telling the outside what happened: events, the endpoints that want them, and their deliveries."""
