"""Currencies, and the least that a card may be charged in each."""

from devstack.stripe.wire.refusals import Invalid

LARGEST = 99_999_999
SMALLEST = {
    "usd": 50, "aed": 200, "aud": 50, "brl": 50, "cad": 50, "chf": 50, "czk": 1500, "dkk": 250, "eur": 50,
    "gbp": 30, "hkd": 400, "huf": 17500, "inr": 50, "jpy": 50, "mxn": 1000, "myr": 200, "nok": 300, "nzd": 50,
    "pln": 200, "ron": 200, "sek": 300, "sgd": 50, "thb": 1000,
}  # fmt: skip


def known_currency(code: str, place: str) -> str:
    """Return the currency in lower case; one that no card is charged in is refused."""
    currency = code.lower()
    if currency not in SMALLEST:
        supported = ", ".join(SMALLEST)
        message = f"Invalid currency: {code}. Stripe currently supports these currencies: {supported}"
        raise Invalid(message, param=place)
    return currency


def chargeable(amount: int, place: str) -> int:
    """Return the amount; more than eight digits are refused."""
    if amount > LARGEST:
        raise Invalid("Amount must be no more than $999,999.99", code="amount_too_large", param=place)
    return amount
