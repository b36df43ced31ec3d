"""Contracts on the chain: the LUKSO implementations, profiles, and test contracts."""
