"""Where to look further: the chain's explorer and Stripe's dashboard. Empty where there is no such place."""

from django.conf import settings

_STRIPE = "https://dashboard.stripe.com"
_OF_STRIPES_OWN = "https://api.stripe.com"


def explorer_transaction(transaction_hash: str) -> str:
    """Return the explorer's page of a transaction."""
    return f"{settings.EXPLORER_URL}/tx/{transaction_hash}" if settings.EXPLORER_URL else ""


def explorer_address(address: str) -> str:
    """Return the explorer's page of an account."""
    return f"{settings.EXPLORER_URL}/address/{address}" if settings.EXPLORER_URL else ""


def stripe_page(kind: str, stripe_id: str) -> str:
    """Return the dashboard's page of `customers`, `subscriptions` or `invoices`; a double has no dashboard."""
    if settings.STRIPE_API_BASE not in {"", _OF_STRIPES_OWN} or not stripe_id:
        return ""
    is_live = settings.STRIPE_SECRET_KEY.startswith(("sk_live_", "rk_live_"))
    return f"{_STRIPE}/{'' if is_live else 'test/'}{kind}/{stripe_id}"
