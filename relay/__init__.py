"""Relay calls: from acceptance through the chain to settlement in credits."""
