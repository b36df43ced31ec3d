"""The only package that calls Stripe. Other code uses `get_billing_client()`."""

from functools import cache

from django.conf import settings

from payments.stripe.client import BillingClient

_installed: BillingClient | None = None


def get_billing_client() -> BillingClient:
    """Return the process's client: the installed one, or else one created once from `settings.STRIPE_*`."""
    return _stripe_client() if _installed is None else _installed


def set_billing_client(client: BillingClient | None) -> None:
    """Install another client for this process; None returns to a client created from the settings."""
    global _installed  # noqa: PLW0603
    _installed = client
    _stripe_client.cache_clear()


@cache
def _stripe_client() -> BillingClient:
    from payments.stripe.sdk import (
        StripeBillingClient,  # imported here because it is slow, and many processes never need it
    )

    return StripeBillingClient(
        secret_key=settings.STRIPE_SECRET_KEY,
        webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS,
        api_base=settings.STRIPE_API_BASE,
        timeout_seconds=settings.STRIPE_TIMEOUT_SECONDS,
        product_id=settings.STRIPE_PRODUCT_ID,
        automatic_tax=settings.STRIPE_AUTOMATIC_TAX,
        places=settings.WEB_THREADS // 3,
    )
