"""Checking in, keeping seeds, publishing tables."""
