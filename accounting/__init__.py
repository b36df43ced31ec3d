"""Accounting: monthly sheets of money, credits and gas."""
