"""The client of Stripe's SDK, with our timeouts, retries and idempotency keys."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import stripe

from gateway.common import clock
from gateway.common.errors import DomainError
from payments.errors import PaymentProcessing, is_lasting
from payments.models import Subscription
from payments.stripe import objects
from payments.stripe.client import SavedCard, SubscriptionState
from payments.stripe.lookups import COLLECTABLE, PAGE, PAYMENTS, UNPAID, Lookups, is_deleted
from payments.stripe.requests import idempotent_request, is_made_by, translated_errors

_PRODUCT_NAME = "Relay credits"
# The metadata keys that mark customers as ours.
_OUR_METADATA = ("address", "user", "operation")


class Cards(Lookups):
    """The account's customers with their cards."""

    def delete_customer(self, *, customer_id: str) -> None:
        with translated_errors():
            customer = self._v1.customers.retrieve(customer_id)
            if is_deleted(customer):
                return
            rows = self._v1.subscriptions.list({**PAGE, "customer": customer_id}).auto_paging_iter()
            if any(row.status not in Subscription.ENDED and self._bills_others(row) for row in rows):
                ours = {"description": "", "metadata": dict.fromkeys(_OUR_METADATA, "")}
                self._v1.customers.update(customer_id, ours)
            else:
                self._v1.customers.delete(customer_id)

    def _bills_others(self, subscription: Any) -> bool:
        state = self._state_of(subscription)
        return state.is_shared or not state.is_ours

    def create_setup_intent(self, *, customer_id: str) -> str:
        with translated_errors():
            intent = self._v1.setup_intents.create(
                {
                    "customer": customer_id,
                    "usage": "off_session",
                    # Without it, Stripe also offers methods of the account that cannot be charged off session.
                    "payment_method_types": ["card"],
                }
            )
            return str(intent.client_secret)

    def create_card_page(self, *, customer_id: str, return_url: str) -> str:
        parameters = {
            "mode": "setup",
            "customer": customer_id,
            "payment_method_types": ["card"],
            "success_url": return_url,
            "cancel_url": return_url,
            "billing_address_collection": "required" if self._automatic_tax else "auto",
        }
        with translated_errors():
            return str(self._v1.checkout.sessions.create(parameters).url)

    def create_portal_page(self, *, customer_id: str, return_url: str) -> str:
        with translated_errors():
            parameters = {"customer": customer_id, "return_url": return_url}
            return str(self._v1.billing_portal.sessions.create(parameters).url)

    def set_receipt_email(self, *, customer_id: str, email: str) -> None:
        with translated_errors():
            self._v1.customers.update(customer_id, {"email": email})

    def has_payment_method(self, *, customer_id: str) -> bool:
        with translated_errors():
            default = self._existing_customer(customer_id).invoice_settings.default_payment_method
            newest = self._newest_card(customer_id)
            if newest is not None and newest.id != default:
                self._make_default(customer_id, newest)
            return bool(newest or default)

    def saved_card(self, *, customer_id: str) -> SavedCard | None:
        with translated_errors():
            row = self._newest_card(customer_id)
        if row is None:
            return None
        card = row.card
        return SavedCard(
            brand=card.brand, last4=card.last4, expires_month=card.exp_month, expires_year=card.exp_year
        )

    def pay_invoice(self, *, invoice_id: str) -> None:
        with translated_errors():
            if self._undecided(invoice_id).status in COLLECTABLE:
                self._pay(invoice_id)

    def _undecided(self, invoice_id: str) -> Any:
        """Return the invoice; raise PaymentProcessing while the bank has not decided about its payment."""
        invoice = self._v1.invoices.retrieve(invoice_id, {"expand": PAYMENTS})
        if invoice.status in UNPAID and self._open_payment(invoice).is_processing:
            raise PaymentProcessing
        return invoice

    def use_newest_card(self, *, customer_id: str) -> None:
        with translated_errors():
            card = self._newest_card(customer_id)
            if card is None:
                return
            self._make_default(customer_id, card)
            for row in self._subscriptions_of(customer_id):
                if row.status not in Subscription.ENDED:
                    self._v1.subscriptions.update(row.id, {"default_payment_method": card.id})

    def payment_method_of_setup(self, *, setup_intent_id: str) -> tuple[str, str]:
        with translated_errors():
            intent = self._v1.setup_intents.retrieve(setup_intent_id)
            return objects.id_of(intent.customer), objects.id_of(intent.payment_method)

    def _pay(self, invoice_id: str) -> None:
        try:
            self._v1.invoices.pay(invoice_id, {"off_session": True})
        except stripe.CardError:
            pass  # The subscription's state has the decline, as after its creation.
        except stripe.InvalidRequestError:
            # A concurrent request may have paid the invoice.
            if self._v1.invoices.retrieve(invoice_id).status in COLLECTABLE:
                raise

    def _newest_card(self, customer_id: str) -> Any:
        cards = self._v1.customers.payment_methods.list(customer_id, {"type": "card", "limit": 1}).data
        return cards[0] if cards else None

    def _make_default(self, customer_id: str, card: Any) -> None:
        parameters: dict[str, Any] = {"invoice_settings": {"default_payment_method": card.id}}
        address = card.billing_details.address
        if self._automatic_tax and address is not None and address.country:
            # Tax depends on the payer's address, which Stripe collects only together with the card.
            given = {name: text for name, text in address.to_dict().items() if text}
            parameters["address"] = given
        self._v1.customers.update(customer_id, parameters)


class StripeBillingClient(Cards):
    """A `BillingClient` over the SDK, with a pinned API version. Safe to share between threads."""

    def create_customer(self, *, profile_address: str, user_id: str, key: str) -> str:
        metadata = {"address": profile_address, "user": user_id, "operation": key}

        def find() -> str | None:
            recent = self._v1.customers.list({**PAGE, "created": {"gte": _yesterday()}})
            return next((str(row.id) for row in recent.auto_paging_iter() if is_made_by(row, key)), None)

        def send(options: dict[str, str]) -> str:
            parameters = {"description": profile_address, "metadata": metadata}
            return str(self._v1.customers.create(parameters, options).id)

        return self._send_once(key, send, find)

    def create_subscription(
        self, *, customer_id: str, amount_minor: int, currency: str, cancels_at_period_end: bool, key: str
    ) -> SubscriptionState:
        parameters = {
            "customer": customer_id,
            "items": [{"price_data": self._monthly_price(amount_minor, currency)}],
            "payment_behavior": "allow_incomplete",
            "off_session": True,
            "billing_mode": {"type": "flexible"},
            "automatic_tax": {"enabled": self._automatic_tax},
            "cancel_at_period_end": cancels_at_period_end,
            "metadata": {"operation": key},
        }

        def find() -> str | None:
            rows = self._subscriptions_of(customer_id)
            return next((str(row.id) for row in rows if is_made_by(row, key)), None)

        def send(options: dict[str, str]) -> str:
            return self._sell(partial(self._v1.subscriptions.create, parameters), options)

        # For a repeated key, Stripe returns its first response, so read the current state.
        return self.retrieve_subscription(subscription_id=self._send_once(key, send, find))

    def update_subscription(
        self,
        *,
        subscription_id: str,
        item_id: str,
        amount_minor: int | None,
        currency: str,
        cancels_at_period_end: bool,
        key: str,
        other_item_ids: Sequence[str] = (),
        resumes: bool = False,
    ) -> SubscriptionState:
        parameters: dict[str, Any] = {"proration_behavior": "none"}
        if resumes:
            parameters["pause_collection"] = ""
        if not cancels_at_period_end and self._has_end_of_its_own(subscription_id):
            parameters["cancel_at"] = ""
        else:
            parameters["cancel_at_period_end"] = cancels_at_period_end
        if amount_minor is not None:
            # Without the item's id, Stripe would add a second item and bill both.
            item = {"id": item_id, "price_data": self._monthly_price(amount_minor, currency), "quantity": 1}
            parameters["items"] = [item, *({"id": other, "deleted": True} for other in other_item_ids)]

        def find() -> str | None:
            state = self._subscription(subscription_id)
            is_updated = (
                (amount_minor is None or (state.is_plain and amount_minor == state.amount_minor))
                and state.cancels_at_period_end == cancels_at_period_end
                and not (resumes and state.is_resting)
            )
            return subscription_id if is_updated else None

        def send(options: dict[str, str]) -> str:
            return self._sell(partial(self._v1.subscriptions.update, subscription_id, parameters), options)

        return self.retrieve_subscription(subscription_id=self._send_once(key, send, find))

    def _has_end_of_its_own(self, subscription_id: str) -> bool:
        """Return whether an end date was set at Stripe; Stripe then refuses `cancel_at_period_end`."""
        with translated_errors():
            row = self._v1.subscriptions.retrieve(subscription_id)
        return bool(row.cancel_at) and not row.cancel_at_period_end

    def cancel_subscription(self, *, subscription_id: str, key: str) -> SubscriptionState:
        # Stripe accepts no idempotency key here. None is needed, because a cancelled subscription stays cancelled.
        with translated_errors():
            state = self._subscription(subscription_id)
            if state.status in Subscription.ENDED or not state.is_ours:
                return state
            if state.is_shared:
                return self._leave(state)
            try:
                self._v1.subscriptions.cancel(subscription_id, {"prorate": False, "invoice_now": False})
            except stripe.InvalidRequestError:
                # The subscription may be cancelled already, if the response to a first attempt was lost.
                state = self._subscription(subscription_id)
                if state.status not in Subscription.ENDED:
                    raise
                return state
            return self._subscription(subscription_id)

    def _leave(self, state: SubscriptionState) -> SubscriptionState:
        """Remove our items from a subscription that also bills other products, and from its draft invoice."""
        # First the draft: a repeat after a crash finds a subscription that is still ours.
        self._clear_draft(state.latest_invoice_id)
        removed = [{"id": item_id, "deleted": True} for item_id in (state.item_id, *state.other_item_ids)]
        parameters = {"items": removed, "proration_behavior": "none"}
        self._v1.subscriptions.update(state.subscription_id, parameters)
        return self._subscription(state.subscription_id)

    def _clear_draft(self, invoice_id: str) -> None:
        """Remove our lines from a draft, which Stripe would collect within the hour for the other products."""
        invoice = self._v1.invoices.retrieve(invoice_id) if invoice_id else None
        if invoice is None or invoice.status != "draft":
            return
        ours = [line.id for line in self._lines_of(invoice) if objects.product_of(line) == self._product_id]
        if ours:
            lines = [{"id": line_id, "behavior": "delete"} for line_id in ours]
            self._v1.invoices.remove_lines(invoice_id, {"lines": lines})

    def create_purchase(
        self, *, customer_id: str, amount_minor: int, currency: str, key: str, has_expired_key: bool = False
    ) -> str:
        parameters: dict[str, Any] = {
            "customer": customer_id,
            "currency": currency,
            "collection_method": "charge_automatically",
            # Stripe must not collect the invoice by itself, so that an unpaid one is not charged later.
            "auto_advance": False,
            # Leave out lines that staff have added for the next month's invoice.
            "pending_invoice_items_behavior": "exclude",
            "payment_settings": {"payment_method_types": ["card"]},
            "automatic_tax": {"enabled": self._automatic_tax},
            "metadata": {"operation": key},
        }

        def find() -> str | None:
            rows = self._v1.invoices.list({**PAGE, "customer": customer_id}).auto_paging_iter()
            return next((str(row.id) for row in rows if is_made_by(row, key)), None)

        def send(options: dict[str, str]) -> str:
            return str(self._v1.invoices.create(parameters, options).id)

        invoice_id = self._send_once(key, send, find, has_expired_key=has_expired_key)
        price = self._price(amount_minor, currency)
        try:
            self._add_line(
                invoice_id, customer_id=customer_id, price=price, key=key, has_expired_key=has_expired_key
            )
        except DomainError as error:
            if is_lasting(error):
                self._delete_empty_draft(invoice_id)
            raise
        return invoice_id

    def _add_line(
        self, invoice_id: str, *, customer_id: str, price: dict[str, Any], key: str, has_expired_key: bool
    ) -> None:
        parameters = {
            "customer": customer_id,
            "invoice": invoice_id,
            "description": _PRODUCT_NAME,
            "price_data": price,
        }

        def find() -> str | None:
            lines = self._v1.invoices.retrieve(invoice_id).lines.data
            return str(lines[0].id) if lines else None

        def send(options: dict[str, str]) -> str:
            return self._sell(partial(self._v1.invoice_items.create, parameters), options)

        self._send_once(f"{key}:line", send, find, has_expired_key=has_expired_key)

    def _delete_empty_draft(self, invoice_id: str) -> None:
        """Delete a draft whose line was refused: the caller never learns its id."""
        with translated_errors():
            invoice = self._v1.invoices.retrieve(invoice_id)
            if invoice.status == "draft" and not invoice.lines.data:
                self._v1.invoices.delete(invoice_id)

    def void_invoice(self, *, invoice_id: str) -> None:
        with translated_errors():
            try:
                status = self._undecided(invoice_id).status
                if status == "draft":
                    self._v1.invoices.delete(invoice_id)
                elif status in UNPAID:
                    self._v1.invoices.void_invoice(invoice_id)
            except stripe.InvalidRequestError as error:
                if error.code == "resource_missing":
                    return  # The invoice was a draft and is deleted now.
                # A concurrent request may have paid or voided the invoice.
                if self._v1.invoices.retrieve(invoice_id).status in COLLECTABLE:
                    raise

    def create_refund(self, *, payment_intent_id: str, amount_minor: int, key: str) -> str:
        parameters = {
            "payment_intent": payment_intent_id,
            "amount": amount_minor,
            "metadata": {"operation": key},
        }

        def find() -> str | None:
            refunds = self._v1.refunds.list({**PAGE, "payment_intent": payment_intent_id})
            return next((str(row.id) for row in refunds.auto_paging_iter() if is_made_by(row, key)), None)

        def send(options: dict[str, str]) -> str:
            return str(self._v1.refunds.create(parameters, options).id)

        return self._send_once(key, send, find, has_expired_key=True)

    def _send_once(
        self,
        key: str,
        send: Callable[[dict[str, str]], str],
        find: Callable[[], str | None],
        *,
        has_expired_key: bool = False,
    ) -> str:
        """Execute a command once. Stripe deletes keys after a day; with an expired key, look for the object first."""
        if has_expired_key:
            with translated_errors():
                made = find()
            if made is not None:
                return made
        return idempotent_request(key=key, send=send, find=find, patience_seconds=self._timeout_seconds)

    def _sell(self, send: Callable[[dict[str, str]], Any], options: dict[str, str]) -> str:
        """Send a command that names our product; if Stripe refuses it, restore the product and send it once more."""
        try:
            return str(send(options).id)
        except stripe.InvalidRequestError:
            if not self._restore_product():
                raise
        # Another key is needed, because Stripe may replay its refusal of the first one for a day.
        return str(send({"idempotency_key": f"{options['idempotency_key']}:product"}).id)

    def _restore_product(self) -> bool:
        """Create the product again if it was deleted, activate it if it was archived; return whether it was either."""
        try:
            product = self._v1.products.retrieve(self._product_id)
        except stripe.InvalidRequestError as error:
            if error.code != "resource_missing":
                raise
            product = None
        if product is not None and not is_deleted(product):
            if product.active:
                return False
            self._v1.products.update(self._product_id, {"active": True})
            return True
        self._has_product = False
        self._ensure_product()
        return True

    def _monthly_price(self, amount_minor: int, currency: str) -> dict[str, Any]:
        return {**self._price(amount_minor, currency), "recurring": {"interval": "month"}}

    def _price(self, amount_minor: int, currency: str) -> dict[str, Any]:
        self._ensure_product()
        return {
            "currency": currency,
            "product": self._product_id,
            "unit_amount": amount_minor,
            # The price includes tax, so the payer pays exactly the requested amount.
            "tax_behavior": "inclusive",
        }

    def _ensure_product(self) -> None:
        if self._has_product:
            return
        with translated_errors():
            try:
                self._v1.products.create({"id": self._product_id, "name": _PRODUCT_NAME})
            except stripe.InvalidRequestError as error:
                if error.code != "resource_already_exists":
                    raise
        self._has_product = True


def _yesterday() -> int:
    return int((clock.now() - timedelta(days=1)).timestamp())
