"""The HTTP API of e-mail notices, and of sponsors' webhook endpoints."""
