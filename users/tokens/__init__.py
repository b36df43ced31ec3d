"""Tokens: their keys, what they say and how they are checked. Nothing here reads a row."""
