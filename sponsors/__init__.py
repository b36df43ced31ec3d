"""Sponsors pay for their users' relay calls, within the rules of their policies."""
