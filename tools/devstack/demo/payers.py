"""
Some generated users pay by card, at the Stripe double of the stack.

Runs as a separate process beside the running service, whose worker processes the webhook events. It may be repeated.
"""

import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import django

from devstack.console import echo
from devstack.files import read_json
from devstack.stripe_account import StripeAccount

if TYPE_CHECKING:
    from users.models import User

_VISA, _BROKE = "pm_card_visa", "pm_card_chargeCustomerFail"
# Card, currency and later events of each payer.
_STORIES = (
    (_VISA, "usd", "stays"),
    ("pm_card_mastercard", "eur", "stays"),
    ("pm_card_amex", "gbp", "ends with the period"),
    (_VISA, "usd", "ends at once"),
    (_VISA, "chf", "is refunded in part"),
    ("pm_card_visa_debit", "usd", "disputes"),
    (_BROKE, "eur", "stays"),
)
_PATIENCE_SECONDS = 300


def subscribe_some(*, seed: str) -> int:
    """Subscribe a few of the generated users of this seed; return how many, 0 if they have subscribed before."""
    from django.conf import settings

    from devstack.demo.people import addresses_of
    from payments.models import Customer, Payout
    from users.models import User

    payers = list(User.objects.filter(profile_address__in=addresses_of(seed, len(_STORIES))).order_by("pk"))
    if Customer.objects.filter(user__in=payers).exists():
        return 0
    rng = random.Random(seed)  # noqa: S311 - nothing here is secret
    provider = StripeAccount(settings.STRIPE_API_BASE, settings.STRIPE_SECRET_KEY)
    for user, (card, currency, _) in zip(payers, _STORIES, strict=True):
        _subscribe(user, provider, card, currency, rng.randint(5, 60) * 100 + 99)
    paying = sum(card != _BROKE for card, _, _ in _STORIES)
    _until("payouts", lambda: Payout.objects.filter(user__in=payers).count() == paying)
    for user, (_, _, story) in zip(payers, _STORIES, strict=True):
        _live_on(user, provider, story)
    _until("all events", lambda: not provider.undelivered_events() and not _undone_events())
    return len(payers)


def _subscribe(user: "User", provider: StripeAccount, card: str, currency: str, amount: int) -> None:
    from django.utils import timezone

    from payments.errors import CardDeclined
    from payments.services import customers, subscriptions

    secret = customers.setup_secret(user=user, now=timezone.now())
    provider.capture_card(secret, card)
    request = subscriptions.SubscriptionRequest(amount, currency, cancels_at_period_end=False)
    with suppress(CardDeclined):
        subscriptions.upsert(user=user, request=request, now=timezone.now())


def _live_on(user: "User", provider: StripeAccount, story: str) -> None:
    from django.utils import timezone

    from payments.models import Payout
    from payments.services import subscriptions

    payout = Payout.objects.filter(user=user).first()
    if payout is None or story == "stays":
        return
    payment = payout.stripe_payment_intent_id
    match story:
        case "is refunded in part":
            provider.controls.refund(payment, payout.amount_minor // 3)
        case "disputes":
            provider.controls.open_dispute(payment)
        case _:
            subscriptions.cancel(user=user, immediately=story == "ends at once", now=timezone.now())


def _undone_events() -> bool:
    from payments.models import StripeEvent

    return StripeEvent.objects.exclude(status=StripeEvent.Status.PROCESSED).exists()


def _until(what: str, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} of the generated payers have not come in {_PATIENCE_SECONDS} s")
        time.sleep(0.1)


if __name__ == "__main__":
    django.setup()
    echo(f"{subscribe_some(seed=read_json(Path(sys.argv[1]))['population']['seed'])} people pay by card")
