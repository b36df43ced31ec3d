"""System checks of payments: configuration errors that would otherwise show only at the first payment."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning, register

from gateway.common.checks import asks_another_server, asks_the_database
from gateway.common.errors import DomainError
from payments.amounts import MINIMUM_CHARGE
from payments.queries import has_events_of_other_mode
from payments.services.snapshots import EVENT_TYPES
from payments.stripe import get_billing_client
from payments.stripe.client import LIVE_PREFIXES, TEST_PREFIXES, AccountState, is_live_key

_STRIPE = "https://api.stripe.com"


@register("payments")
def stripe_key(**_: Any) -> list[CheckMessage]:
    """Refuse a key that contradicts the other settings. Messages never quote the key."""
    key, errors = settings.STRIPE_SECRET_KEY, []
    if not key:
        return []
    if not key.startswith(LIVE_PREFIXES + TEST_PREFIXES):
        errors.append("STRIPE_SECRET_KEY is not a secret key: it must begin with sk_live_, sk_test_ or rk_…")
    if is_live_key(key) and settings.STRIPE_API_BASE.rstrip("/") != _STRIPE:
        errors.append("STRIPE_SECRET_KEY is a live key, but STRIPE_API_BASE is not Stripe's.")
    if not settings.STRIPE_WEBHOOK_SECRETS and "STRIPE_WEBHOOK_SECRETS" not in settings.WITHHELD_SECRETS:
        errors.append(
            "STRIPE_SECRET_KEY is set, but STRIPE_WEBHOOK_SECRETS is empty: every webhook will be refused."
        )
    return [Error(text, id="payments.E001") for text in errors]


@register("payments")
def currencies(**_: Any) -> list[CheckMessage]:
    """Refuse a currency whose minimum charge is not in `MINIMUM_CHARGE`."""
    unknown = [currency for currency in settings.BILLING_CURRENCIES if currency not in MINIMUM_CHARGE]
    if not unknown:
        return []
    text = f"BILLING_CURRENCIES has no known minimum for: {', '.join(unknown)}."
    return [Error(text, hint=f"Known, in lower case: {', '.join(MINIMUM_CHARGE)}.", id="payments.E002")]


@asks_the_database
def events_are_of_our_mode() -> list[CheckMessage]:
    """Refuse a webhook endpoint of the other mode: no payment that it reports can be applied."""
    if not has_events_of_other_mode():
        return []
    text = "Stripe's webhook endpoint sends events of the other mode than STRIPE_SECRET_KEY, live or test."
    hint = "Set key and STRIPE_WEBHOOK_SECRETS of one mode. Dismiss the failed events if they are not yours."
    return [Error(text, hint=hint, id="payments.E003")]


@register("payments", deploy=True)
def payments_are_set_up(**_: Any) -> list[CheckMessage]:
    """Warn if payments are not set up; runs only with `--deploy`, since payments are optional."""
    if settings.STRIPE_SECRET_KEY or "STRIPE_SECRET_KEY" in settings.WITHHELD_SECRETS:
        return []
    return [Warning("STRIPE_SECRET_KEY is not set: payment endpoints return 503.", id="payments.W001")]


@asks_another_server(Warning("Stripe's settings could not be read: Stripe is silent.", id="payments.W002"))
def stripe_settings() -> list[CheckMessage]:
    """Compare the settings of the Stripe account that its API returns with docs/deployment.md."""
    if not settings.STRIPE_SECRET_KEY:
        return []
    try:
        state = get_billing_client().account_state()
    except DomainError as error:
        return [Warning(f"Stripe's settings could not be read: {error.detail}", id="payments.W002")]
    return [
        *_webhook_warnings(state),
        *_account_warnings(state),
        Info(
            "Stripe's API does not expose the settings for e-mails, retries and failed payments.",
            hint="Compare them by hand with docs/deployment.md, section 7.",
            id="payments.I001",
        ),
    ]


def _webhook_warnings(state: AccountState) -> list[CheckMessage]:
    url = f"{settings.PUBLIC_URL}/webhooks/stripe"
    types = state.webhook_types.get(url)
    if types is None:
        text = f"Stripe has no enabled webhook endpoint for {url}."
        return [Warning(text, hint="An hourly task fetches undelivered events.", id="payments.W003")]
    missing = [] if "*" in types else [name for name in EVENT_TYPES if name not in types]
    if not missing:
        return []
    return [Warning(f"Stripe's webhook endpoint does not send: {', '.join(missing)}.", id="payments.W004")]


def _account_warnings(state: AccountState) -> list[CheckMessage]:
    warnings: list[CheckMessage] = []
    if not state.has_portal:
        text = "Stripe's customer portal has no settings, so portalPage is refused. Save the settings once."
        warnings.append(Warning(text, id="payments.W005"))
    if state.has_unpaid_subscription:
        text = "A subscription is unpaid: Stripe is not configured to cancel after the last retry."
        warnings.append(Warning(text, id="payments.W006"))
    if settings.STRIPE_AUTOMATIC_TAX and not state.computes_tax:
        text = "STRIPE_AUTOMATIC_TAX is on, but Stripe Tax is not active."
        warnings.append(Warning(text, id="payments.W007"))
    return warnings
