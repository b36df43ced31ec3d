"""
Amounts of money: minimum charges, display, and payouts in credits.

Whole numbers throughout: money in minor units, 100 per major unit, and whole credits.
A fraction of a credit is dropped once, when a payout is posted.
"""

from decimal import Decimal

from babel.numbers import format_currency

MINOR_UNITS = 100

# Stripe's minimum charge amounts (docs.stripe.com/currencies). Stripe would mark a smaller invoice as paid without a
# payment.
MINIMUM_CHARGE = {"usd": 50, "eur": 50, "gbp": 30, "chf": 50, "aud": 50, "cad": 50, "nzd": 50, "sgd": 50}

# The locale that shows a currency's symbol without its country: "$25.50" and not "US$25.50".
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
    """Return the credits that collected money pays out: `floor(collected * rate / 100)`."""
    return collected_minor * credits_per_major_unit // MINOR_UNITS


def earned_bonus(*, bonus_credits: int, price_minor: int, charged_minor: int) -> int:
    """Return the part of a pack's bonus in proportion to the money charged: the whole bonus for the whole price."""
    return bonus_credits * min(charged_minor, price_minor) // price_minor


def clawback_target(*, paid_out: int, collected_minor: int, returned_minor: int) -> int:
    """
    Return the total credits to take back when `returned_minor` was refunded or disputed.

    `floor(paid_out * returned / collected)`, at most `paid_out`.
    """
    return paid_out * min(max(returned_minor, 0), collected_minor) // collected_minor
