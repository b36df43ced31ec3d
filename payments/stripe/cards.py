"""Cards: captured, made the default, and tried on open invoices."""

import stripe

from payments.models import Subscription
from payments.stripe import reading
from payments.stripe.faults import translated
from payments.stripe.lookups import PAGE, Lookups


class Cards(Lookups):
    """The account's customers with their cards."""

    def create_setup_intent(self, *, customer_id: str) -> str:
        with translated():
            intent = self._v1.setup_intents.create(
                {
                    "customer": customer_id,
                    "usage": "off_session",
                    "automatic_payment_methods": {"enabled": True},
                }
            )
            return str(intent.client_secret)

    def has_payment_method(self, *, customer_id: str) -> bool:
        with translated():
            default = self._v1.customers.retrieve(customer_id).invoice_settings.default_payment_method
            newest = self._newest_card(customer_id)
            if newest is not None and newest != default:
                self._make_default(customer_id, newest)
            return bool(newest or default)

    def pay_open_invoice(self, *, invoice_id: str) -> None:
        with translated():
            if self._v1.invoices.retrieve(invoice_id).status == "open":
                self._pay(invoice_id)

    def use_newest_card(self, *, customer_id: str) -> None:
        with translated():
            payment_method_id = self._newest_card(customer_id)
            if payment_method_id is None:
                return
            self._make_default(customer_id, payment_method_id)
            rows = self._v1.subscriptions.list({**PAGE, "customer": customer_id, "status": "all"})
            for row in rows.auto_paging_iter():
                if row.status not in Subscription.ENDED:
                    self._v1.subscriptions.update(row.id, {"default_payment_method": payment_method_id})

    def payment_method_of_setup(self, *, setup_intent_id: str) -> tuple[str, str]:
        with translated():
            intent = self._v1.setup_intents.retrieve(setup_intent_id)
            return reading.reference(intent.customer), reading.reference(intent.payment_method)

    def _pay(self, invoice_id: str) -> None:
        try:
            self._v1.invoices.pay(invoice_id, {"off_session": True})
        except stripe.CardError:
            pass  # The subscription's state shows a decline, as after creation.
        except stripe.InvalidRequestError:
            # Another request was faster.
            if self._v1.invoices.retrieve(invoice_id).status == "open":
                raise

    def _newest_card(self, customer_id: str) -> str | None:
        cards = self._v1.customers.payment_methods.list(customer_id, {"type": "card", "limit": 1}).data
        return str(cards[0].id) if cards else None

    def _make_default(self, customer_id: str, payment_method_id: str) -> None:
        self._v1.customers.update(
            customer_id, {"invoice_settings": {"default_payment_method": payment_method_id}}
        )
