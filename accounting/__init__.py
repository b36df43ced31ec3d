"""Accounting: what every credit and cent was, month by month."""
