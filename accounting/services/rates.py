"""Rates of coins: read from CSV lines, stored by day, coin and currency."""

import csv
from datetime import date
from decimal import Decimal, InvalidOperation

from django.core.exceptions import ValidationError
from django.db import transaction

from accounting.models import CoinRate
from gateway.chain.config import home

_MOST = 5_000


def parsed(text: str) -> list[CoinRate]:
    """
    Return the rates of CSV lines `day,currency,price,coin`; a first line with titles is skipped.

    A line without a coin is a rate of the home chain's coin.

    Raises:
        ValidationError: a line does not contain a rate, or its day is in a closed month.
    """
    lines = [line for line in csv.reader(text.splitlines(), skipinitialspace=True) if any(line)]
    if lines and not lines[0][0][:1].isdigit():
        del lines[0]
    if not 0 < len(lines) <= _MOST:
        raise ValidationError(f"Give 1 to {_MOST:,} lines.")
    return [_rate(number, line) for number, line in enumerate(lines, 1)]


def _rate(number: int, line: list[str]) -> CoinRate:
    try:
        day, currency, price, *coin = (cell.strip() for cell in line)
        (named,) = coin or [home().currency]
        row = CoinRate(
            day=date.fromisoformat(day), coin=named, currency=currency.lower(), price=Decimal(price)
        )
    except (ValueError, InvalidOperation) as error:
        raise ValidationError(f"Line {number} is not day, currency, price, coin: {','.join(line)}") from error
    try:
        row.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        raise ValidationError(f"Line {number}: {' '.join(error.messages)}") from error
    if not row.price > 0:
        raise ValidationError(f"Line {number}: the price must be above 0.")
    return row


@transaction.atomic
def store(text: str) -> list[CoinRate]:
    """Store the rates of CSV lines, replacing those of the same days; return them. Joins the caller's transaction."""
    rows = parsed(text)
    unique = {(row.day, row.coin, row.currency): row for row in rows}
    CoinRate.objects.bulk_create(
        unique.values(),
        update_conflicts=True,
        unique_fields=["day", "coin", "currency"],
        update_fields=["price"],
    )
    return list(unique.values())
