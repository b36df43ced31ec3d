"""System checks of payments: what would only show when the first customer pays."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from payments.amounts import MINIMUM_CHARGE
from payments.stripe.client import LIVE_PREFIXES, TEST_PREFIXES, is_live_key

_STRIPE = "https://api.stripe.com"


@register("payments")
def stripe_key(**_: Any) -> list[CheckMessage]:
    """Refuse a key that does not fit the rest of the settings; none of the texts quotes it."""
    key, errors = settings.STRIPE_SECRET_KEY, []
    if not key:
        return []
    if not key.startswith(LIVE_PREFIXES + TEST_PREFIXES):
        errors.append("STRIPE_SECRET_KEY is no secret key: it begins with none of sk_live_, sk_test_, rk_…")
    if is_live_key(key) and settings.DEBUG:
        errors.append("STRIPE_SECRET_KEY is a live key, and DEBUG is on.")
    if is_live_key(key) and settings.STRIPE_API_BASE.rstrip("/") != _STRIPE:
        errors.append("STRIPE_SECRET_KEY is a live key, and STRIPE_API_BASE is not Stripe's.")
    if not settings.STRIPE_WEBHOOK_SECRETS:
        errors.append(
            "STRIPE_SECRET_KEY is set, and STRIPE_WEBHOOK_SECRETS is empty: every webhook is refused."
        )
    return [Error(text, id="payments.E001") for text in errors]


@register("payments")
def currencies(**_: Any) -> list[CheckMessage]:
    """Refuse a currency whose smallest card charge is not in `MINIMUM_CHARGE`."""
    unknown = [currency for currency in settings.BILLING_CURRENCIES if currency not in MINIMUM_CHARGE]
    if not unknown:
        return []
    text = f"BILLING_CURRENCIES has no known minimum for: {', '.join(unknown)}."
    return [Error(text, hint=f"Known, in lower case: {', '.join(MINIMUM_CHARGE)}.", id="payments.E002")]


@register("payments", deploy=True)
def payments_are_set_up(**_: Any) -> list[CheckMessage]:
    """Warn that nobody can pay; runs only with `--deploy`, since a service may do without payments."""
    if settings.STRIPE_SECRET_KEY:
        return []
    return [Warning("STRIPE_SECRET_KEY is not set: the payment paths answer 503.", id="payments.W001")]
