"""Pages of Stripe's dashboard."""

from django.conf import settings

from payments.stripe.modes import is_live_key

_STRIPE = "https://dashboard.stripe.com"
_OF_STRIPES_OWN = "https://api.stripe.com"


def stripe_page(kind: str, stripe_id: str) -> str:
    """Return the page of one of the `customers`, `subscriptions` or `invoices`; empty with a stand-in for Stripe."""
    if settings.STRIPE_API_BASE not in {"", _OF_STRIPES_OWN} or not stripe_id:
        return ""
    mode = "" if is_live_key(settings.STRIPE_SECRET_KEY) else "test/"
    return f"{_STRIPE}/{mode}{kind}/{stripe_id}"
