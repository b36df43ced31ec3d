"""Months of payments at random, against the lab's reference: `python -m lab months`."""
