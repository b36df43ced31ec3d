"""
Sums of money: which may be charged, how they are shown, what they pay out.

Whole numbers throughout: money in minor units of a currency that has 100 of them,
credits whole. Fractions of a credit are dropped once, when a payout is posted.
"""

from decimal import Decimal

from babel.numbers import format_currency

MINOR_UNITS = 100

# The least that Stripe charges a card (docs.stripe.com/currencies, minimum charge amounts). A smaller
# invoice would be marked paid without a payment.
MINIMUM_CHARGE = {"usd": 50, "eur": 50, "gbp": 30, "chf": 50, "aud": 50, "cad": 50, "nzd": 50, "sgd": 50}

# The locale in which a currency's symbol stands alone: "$25.50" and not "US$25.50".
_HOME_LOCALE = {
    "usd": "en_US",
    "eur": "en_IE",
    "gbp": "en_GB",
    "aud": "en_AU",
    "cad": "en_CA",
    "nzd": "en_NZ",
}


def display_amount(*, amount_minor: int, currency: str) -> str:
    """Return the currency's symbol and the amount with two decimals, such as `$25.50`, `€9.00` or `CHF12.00`."""
    return format_currency(
        Decimal(amount_minor) / MINOR_UNITS,
        currency.upper(),
        format="¤0.00",
        locale=_HOME_LOCALE.get(currency, "en"),
        currency_digits=False,
    )


def payout_credits(*, collected_minor: int, credits_per_major_unit: int) -> int:
    """Return `floor(collected * rate / 100)`: the credits that this much collected money pays out."""
    return collected_minor * credits_per_major_unit // MINOR_UNITS


def clawback_target(*, paid_out: int, collected_minor: int, returned_minor: int) -> int:
    """
    Return the credits that must have been taken back in all once `returned_minor` was refunded or disputed.

    `floor(paid_out * returned / collected)`, never more than was paid out.
    """
    return paid_out * min(max(returned_minor, 0), collected_minor) // collected_minor
