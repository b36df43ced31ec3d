"""Prepare and close months; rates of the coin."""
