"""Amounts of wei as people read them."""

from decimal import Decimal

_WEI_PER_LYX = 10**18


def in_lyx(wei: int, *, places: int) -> str:
    """Return the amount in LYX, rounded to so many decimal places."""
    return f"{Decimal(wei) / _WEI_PER_LYX:,.{places}f} LYX"
