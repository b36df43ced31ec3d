"""
Which refusal of ours a Stripe error becomes, decided here and nowhere else.

What Stripe is asked, through its own SDK: nothing here changes anything there.
"""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import stripe

from gateway.common.errors import DomainError
from payments.errors import BillingRefused, BillingUnavailable, CardDeclined, PaymentMethodRequired
from payments.models import Subscription
from payments.stripe import webhooks
from payments.stripe.states import (
    CustomerState,
    InvoiceState,
    MoneyBack,
    ReceivedEvent,
    SubscriptionState,
    is_live_key,
)

logger = logging.getLogger(__name__)
_RETRY_AFTER_SECONDS = 5


@contextmanager
def translated() -> Iterator[None]:
    """Turn the SDK's exceptions into refusals; their texts may name customers and stay in the log."""
    try:
        yield
    except stripe.StripeError as error:
        raise refusal_of(error) from error


def refusal_of(error: stripe.StripeError) -> DomainError:
    """Return the refusal that a caller gets."""
    logger.warning("stripe: %s %s %s", type(error).__name__, error.http_status, error.code)
    if isinstance(error, stripe.CardError):
        return CardDeclined("The card was declined.", declineCode=decline_code_of(error))
    if is_passing(error):
        return BillingUnavailable(
            "Stripe does not answer. Repeat the request.", retry_after=_RETRY_AFTER_SECONDS
        )
    if "no attached payment source" in (error.user_message or ""):
        return PaymentMethodRequired("Capture a card with getSetupIntent first.")
    return BillingRefused("Stripe refused the request.", reason=error.code or "invalid_request")


def is_passing(error: stripe.StripeError) -> bool:
    """Return whether a repeat with the same key may succeed: away, busy, at fault, or our key is being replaced."""
    if isinstance(error, stripe.APIConnectionError | stripe.RateLimitError | stripe.AuthenticationError):
        return True
    return error.http_status is None or error.http_status in {409, 429} or error.http_status >= 500


def is_key_in_use(error: stripe.StripeError) -> bool:
    """Return whether Stripe is still at work on another request with the same key."""
    return (
        error.http_status == 409 and error.error is not None and error.error.code == "idempotency_key_in_use"
    )


def is_saved_fault(error: stripe.StripeError) -> bool:
    """Return whether Stripe answers a key with the 500 of its first use, which it keeps for a day."""
    headers = {name.lower(): text for name, text in (error.headers or {}).items()}
    return (error.http_status or 0) >= 500 and headers.get("idempotent-replayed") == "true"


def decline_code_of(error: stripe.CardError) -> str:
    """Return the issuer's reason, or Stripe's where the issuer gave none."""
    declined = getattr(error.error, "decline_code", None) if error.error else None
    return str(declined or error.code or "generic_decline")


# What our readers were written for; a newer package alone does not change what Stripe answers.
API_VERSION = "2026-10-28.endive"
PAGE = {"limit": 100}
_NETWORK_RETRIES = 2
_PAYMENTS = ["payments"]
_LATEST_PAYMENTS = ["latest_invoice.payments"]


class Lookups:
    """The account of a key, to read."""

    def __init__(
        self, *, secret_key: str, webhook_secrets: Sequence[str], api_base: str, timeout_seconds: int
    ) -> None:
        self._webhook_secrets = tuple(webhook_secrets)
        self._timeout_seconds = timeout_seconds
        self._is_live = is_live_key(secret_key)
        self._client = (
            stripe.StripeClient(
                secret_key,
                stripe_version=API_VERSION,
                base_addresses={"api": api_base},
                max_network_retries=_NETWORK_RETRIES,
                http_client=stripe.RequestsClient(timeout=timeout_seconds),
            )
            if secret_key
            else None
        )

    @property
    def _v1(self) -> Any:
        if self._client is None:
            raise BillingUnavailable("Payments are not set up on this service.", retry_after=3600)
        return self._client.v1

    def retrieve_subscription(self, *, subscription_id: str) -> SubscriptionState:
        return self._read_anew(subscription_id)

    def list_subscriptions(self, *, customer_id: str) -> list[SubscriptionState]:
        with translated():
            rows = self._v1.subscriptions.list({**PAGE, "customer": customer_id, "status": "all"})
            return [webhooks.subscription_state(row) for row in rows.auto_paging_iter()]

    def retrieve_invoice(self, *, invoice_id: str) -> InvoiceState:
        with translated():
            return webhooks.invoice_state(self._v1.invoices.retrieve(invoice_id, {"expand": _PAYMENTS}))

    def paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        with translated():
            rows = self._v1.invoices.list(
                {
                    "status": "paid",
                    "created": {"gte": int(since.timestamp())},
                    **PAGE,
                    "expand": ["data.payments"],
                }
            )
            yield from map(webhooks.invoice_state, rows.auto_paging_iter())

    def customers(self) -> Iterator[CustomerState]:
        with translated():
            yield from map(webhooks.customer_state, self._v1.customers.list(PAGE).auto_paging_iter())

    def living_subscriptions(self) -> Iterator[SubscriptionState]:
        with translated():
            # Without a status Stripe leaves out only the cancelled ones.
            rows = self._v1.subscriptions.list(PAGE).auto_paging_iter()
            yield from (
                webhooks.subscription_state(row) for row in rows if row.status not in Subscription.ENDED
            )

    def payments_gone_back_since(self, *, since: datetime) -> Iterator[str]:
        begun = {**PAGE, "created": {"gte": int(since.timestamp())}}
        with translated():
            for noun in (self._v1.refunds, self._v1.disputes):
                named = (
                    webhooks.reference(row.payment_intent) for row in noun.list(begun).auto_paging_iter()
                )
                yield from (intent for intent in named if intent)

    def money_back(self, *, payment_intent_id: str) -> MoneyBack:
        of_payment = {**PAGE, "payment_intent": payment_intent_id}
        with translated():
            refunds = self._v1.refunds.list(of_payment)
            disputes = self._v1.disputes.list(of_payment)
            return MoneyBack(
                payment_intent_id=payment_intent_id,
                refunded_minor=sum(
                    row.amount for row in refunds.auto_paging_iter() if row.status in {"succeeded", "pending"}
                ),
                disputed_minor=sum(row.amount for row in disputes.auto_paging_iter() if _is_withdrawn(row)),
            )

    def payment_intent_of(self, *, object_id: str) -> str:
        with translated():
            readers: dict[str, Callable[[str], Any]] = {
                "re": self._v1.refunds.retrieve,
                "pyr": self._v1.refunds.retrieve,
                "dp": self._v1.disputes.retrieve,
                "du": self._v1.disputes.retrieve,
                "ch": self._v1.charges.retrieve,
                "py": self._v1.charges.retrieve,
            }
            reader = readers.get(object_id.split("_", 1)[0])
            return webhooks.reference(reader(object_id).payment_intent) if reader else ""

    def undelivered_events(
        self, *, since: datetime, types: tuple[str, ...]
    ) -> Iterator[tuple[ReceivedEvent, bytes]]:
        with translated():
            rows = self._v1.events.list(
                {
                    "types": list(types),
                    "delivery_success": False,
                    "created": {"gte": int(since.timestamp())},
                    **PAGE,
                }
            )
            for row in reversed(list(rows.auto_paging_iter())):
                told = row.to_dict()
                yield webhooks.event_of(told), json.dumps(told, default=str).encode()

    def read_webhook(self, *, body: bytes, signature: str) -> ReceivedEvent:
        return webhooks.read(
            body=body, signature=signature, secrets=self._webhook_secrets, is_live=self._is_live
        )

    def _read_anew(self, subscription_id: str) -> SubscriptionState:
        """Read what an order was about: a repeated key gets the answer that was true the first time."""
        with translated():
            return self._subscription(subscription_id)

    def _subscription(self, subscription_id: str) -> SubscriptionState:
        return self._explained(self._v1.subscriptions.retrieve(subscription_id, {"expand": _LATEST_PAYMENTS}))

    def _explained(self, found: Any) -> SubscriptionState:
        """Return the state, with what an incomplete subscription waits for."""
        if found.status != "incomplete" or isinstance(found.latest_invoice, str | None):
            return webhooks.subscription_state(found)
        intent_id = webhooks.payment_intent_of_invoice(found.latest_invoice)
        if not intent_id:
            return webhooks.subscription_state(found)
        intent = self._v1.payment_intents.retrieve(intent_id)
        failure = intent.last_payment_error
        declined = (getattr(failure, "decline_code", None) or failure.code) if failure else "generic_decline"
        # A bank may also decline what it wants confirmed; the wallet confirms the same payment then.
        if intent.status == "requires_action" or declined == "authentication_required":
            return webhooks.subscription_state(found, client_secret=str(intent.client_secret))
        return webhooks.subscription_state(found, decline_code=str(declined))


def _is_withdrawn(dispute: Any) -> bool:
    """Return whether the disputed sum is out of our account right now: taken, and not reinstated since."""
    moved = [int(entry.amount) for entry in dispute.balance_transactions or []]
    return sum(moved) < 0
