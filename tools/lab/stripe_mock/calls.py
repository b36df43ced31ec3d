"""Drives the adapter through all of its requests, on the Stripe double."""

import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import stripe
import urllib3

from devstack.services.stripe_double import StripeDouble
from gateway.common.errors import DomainError
from lab.stripe_mock.recording import Lines, RecordingClient, Services, methods_in
from payments.stripe import lookups, sdk
from payments.stripe.sdk import StripeBillingClient
from stripe_double.client import ControlClient

_DAY, _MONTH = 86_400, 32 * 86_400
_COST = 2_550
_VISA, _DECLINES, _ASKS = "pm_card_visa", "pm_card_chargeCustomerFail", "pm_card_authenticationRequired"
_BACK = "https://wallet.example/back"


class _Adapter(StripeBillingClient):
    """The adapter, whose calls of the SDK are noted by name."""

    called: set[str]

    @property
    def _v1(self) -> Any:
        return Services(super()._v1, self.called)


class Calls:
    """The adapter, the account that it talks to, and every request that it has sent."""

    def __init__(self, double: StripeDouble) -> None:
        self.double = double
        self.recorder = RecordingClient()
        self.lines, self.called = Lines(sdk, lookups), set[str]()
        self.controls: ControlClient = double.controls
        self.v1: Any = stripe.StripeClient(double.secret_key, base_addresses={"api": double.url}).v1
        self.product = f"credits-{secrets.token_hex(4)}"
        self.adapter = self.new_adapter()

    def new_adapter(
        self, *, product: str = "", automatic_tax: bool = False, retries: int = 0
    ) -> StripeBillingClient:
        """Return an adapter whose requests are kept; the SDK repeats none, or `retries` of them."""
        made = _Adapter(
            secret_key=self.double.secret_key,
            webhook_secrets=("whsec_of_the_lab",),
            api_base=self.double.url,
            timeout_seconds=30,
            product_id=product or self.product,
            automatic_tax=automatic_tax,
        )
        made.called = self.called
        made._client = stripe.StripeClient(
            self.double.secret_key,
            stripe_version=lookups.API_VERSION,
            base_addresses={"api": self.double.url},
            max_network_retries=retries,
            http_client=self.recorder,
        )
        return made

    def run(self) -> None:
        """Send everything; lists are read in pages of one, so that every list also asks for a next page."""
        page, lookups.PAGE["limit"] = lookups.PAGE["limit"], 1
        try:
            with self.lines.traced():
                for part in (
                    self._customers, self._subscriptions, self._purchases, self._lists, self._returns, self._products,
                    self._reads, self._ends,
                ):  # fmt: skip
                    part()
        finally:
            lookups.PAGE["limit"] = page

    def missed(self) -> list[str]:
        """Return the adapter's statements that did not run, and the methods of the SDK that were not called."""
        unused = {
            name
            for name in methods_in(sdk, lookups)
            if not any(f"{called}.".startswith(f"{name}.") for called in self.called)
        }
        return [*self.lines.missed(), *sorted(unused)]

    def customer(self, card: str = _VISA, adapter: StripeBillingClient | None = None) -> str:
        """Return a customer of the adapter with a card."""
        adapter = adapter or self.adapter
        address = "0x" + secrets.token_hex(20)
        made = adapter.create_customer(profile_address=address, user_id="7", key=secrets.token_hex(8))
        self._capture(made, card)
        adapter.use_newest_card(customer_id=made)
        return made

    def subscribe(self, customer: str, adapter: StripeBillingClient | None = None) -> Any:
        """Return a subscription that the adapter makes."""
        return (adapter or self.adapter).create_subscription(
            customer_id=customer,
            amount_minor=_COST,
            currency="usd",
            cancels_at_period_end=False,
            key=secrets.token_hex(8),
        )

    def _update(self, state: Any, amount: int | None = None, **changes: Any) -> Any:
        return self.adapter.update_subscription(
            **{
                "subscription_id": state.subscription_id,
                "item_id": state.item_id,
                "amount_minor": amount,
                "currency": "usd",
                "cancels_at_period_end": False,
                "key": secrets.token_hex(8),
                **changes,
            }
        )

    def _capture(self, customer: str, card: str) -> str:
        intent = self.adapter.create_setup_intent(customer_id=customer).split("_secret_")[0]
        parameters = {"payment_method": card, "return_url": _BACK}
        if self.v1.setup_intents.confirm(intent, parameters).status == "requires_action":
            self.controls.authenticate(intent)
        return intent

    def _loses_the_response(self, path: str) -> None:
        self.controls.error_after_commit(method="POST", path=path)

    def _price(self, amount: int, product: str = "") -> dict[str, Any]:
        recurring = {"interval": "month"}
        return {
            "currency": "usd", "product": product or self.product, "unit_amount": amount, "recurring": recurring,
        }  # fmt: skip

    def _other(self) -> dict[str, Any]:
        """Return an item of another product."""
        with suppress(stripe.InvalidRequestError):
            self.v1.products.create({"id": "hats", "name": "Hats"})
        return {"price_data": self._price(700, "hats")}

    def _refused(self, call: Callable[[], object]) -> None:
        with suppress(DomainError):
            call()
            raise RuntimeError("The adapter was not refused.")

    def _customers(self) -> None:
        adapter, customer = self.adapter, self.customer()
        self._loses_the_response("/v1/customers")
        self.customer()
        adapter.customer_made_for(customer_id=customer)
        adapter.set_receipt_email(customer_id=customer, email="a@wallet.example")
        adapter.receipt_email(customer_id=customer)
        adapter.has_payment_method(customer_id=customer)
        adapter.payment_method_of_setup(setup_intent_id=self._capture(customer, _VISA))
        adapter.has_payment_method(customer_id=customer)
        adapter.saved_card(customer_id=customer)
        adapter.customer_balance(customer_id=customer, currency="usd")
        bare = self._without_card()
        adapter.saved_card(customer_id=bare)
        adapter.use_newest_card(customer_id=bare)
        for page in (adapter.create_card_page, adapter.create_portal_page):
            page(customer_id=customer, return_url=_BACK)
        self._taxed()

    def _without_card(self) -> str:
        return self.adapter.create_customer(profile_address="0x1", user_id="1", key=secrets.token_hex(8))

    def _taxed(self) -> None:
        """Subscribe with automatic tax, with the country that the card's page asks for."""
        adapter = self.new_adapter(automatic_tax=True)
        customer = self.customer(adapter=adapter)
        page = adapter.create_card_page(customer_id=customer, return_url=_BACK)
        form = urlencode({"payment_method": _VISA, "country": "DE"})
        urllib3.request("POST", page, body=form, redirect=False, retries=False)
        adapter.has_payment_method(customer_id=customer)
        adapter.retrieve_invoice(invoice_id=self.subscribe(customer, adapter).latest_invoice_id)

    def _subscriptions(self) -> None:
        customer = self.customer()
        self._loses_the_response("/v1/subscriptions")
        state = self.subscribe(customer)
        self._loses_the_response(f"/v1/subscriptions/{state.subscription_id}")
        self._update(state, 3_550)
        self._update(state, cancels_at_period_end=True)
        self.v1.subscriptions.update(state.subscription_id, {"cancel_at_period_end": False})
        self.v1.subscriptions.update(state.subscription_id, {"cancel_at": self.controls.now + 50 * _DAY})
        self._update(state)
        pause = {"pause_collection": {"behavior": "void"}, "items": [{"price_data": self._price(500)}]}
        self.v1.subscriptions.update(state.subscription_id, pause)
        resting = self.adapter.retrieve_subscription(subscription_id=state.subscription_id)
        self._update(resting, _COST, other_item_ids=resting.other_item_ids, resumes=True)
        self.adapter.use_newest_card(customer_id=customer)
        self.adapter.next_charge(subscription_id=state.subscription_id)
        self.controls.timeout_after_commit(method="DELETE", path="/v1/subscriptions")
        impatient = self.new_adapter(retries=1)
        for _ in range(2):
            impatient.cancel_subscription(subscription_id=state.subscription_id, key="unused")
        self.adapter.next_charge(subscription_id=state.subscription_id)
        state = self.subscribe(customer)
        self.adapter.cancel_subscription(subscription_id=state.subscription_id, key="unused")
        self._open_payments()

    def _open_payments(self) -> None:
        """Leave first payments and renewals open: processing, declined, challenged, without a payment."""
        self.controls.off_session("processing")
        waiting = self.subscribe(self.customer())
        self._refused(lambda: self.adapter.pay_invoice(invoice_id=waiting.latest_invoice_id))
        self.controls.off_session("action")
        for card in (_DECLINES, _ASKS):
            state = self.subscribe(self.customer(card))
            self.adapter.pay_invoice(invoice_id=state.latest_invoice_id)
        customer = self.customer()
        state = self.subscribe(customer)
        self.v1.subscriptions.update(
            state.subscription_id, {"pause_collection": {"behavior": "keep_as_draft"}}
        )
        self.controls.advance(_MONTH)
        state = self.adapter.retrieve_subscription(subscription_id=state.subscription_id)
        self.controls.error_after_commit(path=f"/v1/invoices/{state.latest_invoice_id}/pay")
        self._refused(lambda: self.adapter.pay_invoice(invoice_id=state.latest_invoice_id))
        self.adapter.pay_invoice(invoice_id=state.latest_invoice_id)
        self._unpaid()

    def _unpaid(self) -> None:
        """Let renewals fail until Stripe only makes drafts, and where it writes them off; without a card, too."""
        for outcome, pause in (("unpaid", ""), ("leave", {"behavior": "mark_uncollectible"})):
            customer = self.customer()
            state = self.subscribe(customer)
            card = self.v1.payment_methods.list({"customer": customer}).data[0].id
            self.controls.after_retries(outcome)
            self.controls.change_card(card, decline_code="lost_card")
            self.controls.advance(_MONTH)
            self.v1.subscriptions.update(state.subscription_id, {"pause_collection": pause})
            self.controls.advance(_MONTH)
            state = self.adapter.retrieve_subscription(subscription_id=state.subscription_id)
        self.controls.after_retries("cancel")
        customer = self.customer(_DECLINES)
        state = self.subscribe(customer)
        self.v1.payment_methods.detach(self.v1.payment_methods.list({"customer": customer}).data[0].id)
        self._refused(lambda: self.adapter.pay_invoice(invoice_id=state.latest_invoice_id))

    def _purchases(self) -> None:
        """
        Buy: with lost responses, again after a day, paid, and voided as a draft, open, and while Stripe refuses it.
        """
        customer, unpaid = self.customer(), self.customer(_DECLINES)
        self._loses_the_response("/v1/invoices")
        self.adapter.pay_invoice(invoice_id=self._bought(customer))
        self._loses_the_response("/v1/invoiceitems")
        draft = self._bought(customer)
        for _ in range(2):
            self.adapter.void_invoice(invoice_id=draft)
        key = secrets.token_hex(8)
        invoice = self._bought(unpaid, key)
        self._bought(unpaid, key, has_expired_key=True)
        self.adapter.pay_invoice(invoice_id=invoice)
        self.adapter.open_payment(invoice_id=invoice)
        self.controls.fail(400, method="POST", path="/v1/invoiceitems")
        self._refused(lambda: self._bought(unpaid))
        self.controls.fail(400, method="POST", path=f"/v1/invoices/{invoice}/void")
        self._refused(lambda: self.adapter.void_invoice(invoice_id=invoice))
        self.adapter.void_invoice(invoice_id=invoice)

    def _bought(self, customer: str, key: str = "", *, has_expired_key: bool = False) -> str:
        return self.adapter.create_purchase(
            customer_id=customer,
            amount_minor=_COST,
            currency="usd",
            key=key or secrets.token_hex(8),
            has_expired_key=has_expired_key,
        )

    def _lists(self) -> None:
        """Read what has more lines, items and payments than Stripe embeds."""
        customer = self.customer()
        items = [{"price_data": self._price(100 + number)} for number in range(12)]
        made = self.v1.subscriptions.create({"customer": customer, "items": items})
        self.adapter.retrieve_subscription(subscription_id=made.id)
        card = self.v1.payment_methods.list({"customer": customer}).data[0].id
        self.controls.change_card(card, decline_code="insufficient_funds")
        self.controls.advance(_MONTH)
        self.controls.change_card(card, decline_code=None)
        invoice = self.adapter.retrieve_subscription(subscription_id=made.id).latest_invoice_id
        for _ in range(11):
            self.controls.pay_invoice_part(invoice, 50)
        self.adapter.retrieve_subscription(subscription_id=made.id)
        list(self.adapter.part_paid_invoices_since(since=self._now() - timedelta(days=40)))
        self.adapter.pay_invoice(invoice_id=invoice)
        self.adapter.retrieve_invoice(invoice_id=invoice)
        self.adapter.invoices(customer_id=customer, limit=1, after="")
        self.adapter.invoice_summary(invoice_id=invoice)
        self.adapter.invoices(customer_id=customer, limit=1, after=invoice)
        self.adapter.invoices(customer_id=self._without_card(), limit=1, after="")

    def _returns(self) -> None:
        """Refund and dispute payments, and warn of fraud."""
        began = self._now() - timedelta(hours=1)
        intents = [self._payment() for _ in range(3)]
        refund = self.adapter.create_refund(payment_intent_id=intents[0], amount_minor=500, key="first")
        self._loses_the_response("/v1/refunds")
        self.adapter.create_refund(payment_intent_id=intents[0], amount_minor=500, key="second")
        for intent in intents[1:]:
            warning = self.controls.warn_of_fraud(intent)
            dispute = self.controls.open_dispute(intent)
        self.controls.close_dispute(dispute["id"], won=True)
        charge = self.v1.disputes.retrieve(dispute["id"]).charge
        for identifier in (refund, dispute["id"], charge, warning["id"], "cus_1"):
            self.adapter.payment_intent_of(object_id=identifier)
        for intent in intents:
            self.adapter.returned_money(payment_intent_id=intent)
            self.adapter.paid_with(payment_intent_id=intent)
        list(self.adapter.balance_transactions(since=began, until=self._now() + timedelta(days=1)))
        paid = self.subscribe(self.customer()).latest_invoice_id
        self.adapter.credited_off_stripe(invoice_id=paid)
        note = self.controls.create_credit_note(paid, 100, out_of_band=True)
        self.adapter.credited_off_stripe(invoice_id=paid)
        self.adapter.invoice_of_credit_note(credit_note_id=note["id"])
        list(self.adapter.refunded_or_disputed_since(since=began))
        self.controls.warn_of_fraud(intents[0])
        list(self.adapter.fraud_warnings_since(since=began))

    def _payment(self) -> str:
        state = self.subscribe(self.customer())
        return self.adapter.retrieve_invoice(invoice_id=state.latest_invoice_id).payment_intent_id

    def _products(self) -> None:
        """Sell a product that exists already, one that is archived, and one that is deleted."""
        product = f"credits-{secrets.token_hex(4)}"
        for _ in range(2):
            adapter = self.new_adapter(product=product)
            adapter._price(_COST, "usd")
        self.v1.products.delete(product)
        self.subscribe(self.customer(), adapter)
        self.v1.products.update(product, {"active": False})
        self.subscribe(self.customer(), adapter)
        self._refused(lambda: self.subscribe("cus_unknown", adapter))

    def _reads(self) -> None:
        adapter, now = self.adapter, self._now()
        list(adapter.customers())
        list(adapter.live_subscriptions())
        customer = self.customer()
        state = self.subscribe(customer)
        list(adapter.live_subscriptions(customer_id=customer))
        adapter.list_subscriptions(customer_id=customer)
        list(adapter.paid_invoices_since(since=now - timedelta(days=1)))
        self._paid_later()
        self.controls.set_webhook_endpoint("http://127.0.0.1:1/", "whsec_of_the_lab")
        self._update(state, 1_000)
        self.controls.settle()
        list(adapter.undelivered_events(since=now, types=("customer.subscription.updated", "invoice.paid")))
        adapter.account_state()
        self.controls.set_webhook_endpoint(None, "")
        self._refused(lambda: adapter.read_webhook(body=b"{}", signature=""))

    def _paid_later(self) -> None:
        """Read an invoice that was made before the day in question and paid on it."""
        state = self.subscribe(self.customer(_DECLINES))
        self.controls.advance(_DAY // 2)
        card = self.v1.payment_methods.list({"customer": state.customer_id}).data[0].id
        self.controls.change_card(card, decline_code=None)
        self.adapter.pay_invoice(invoice_id=state.latest_invoice_id)
        list(self.adapter.paid_invoices_since(since=self._now() - timedelta(hours=1)))

    def _ends(self) -> None:
        """Leave subscriptions and customers that others use, too."""
        for is_renewing in (False, True):
            customer = self.customer()
            state = self.subscribe(customer)
            self.v1.subscriptions.update(state.subscription_id, {"items": [self._other()]})
            self.adapter.delete_customer(customer_id=customer)
            if is_renewing:
                self.controls.advance_to(int(state.current_period_end.timestamp()) + 60)
            self.adapter.cancel_subscription(subscription_id=state.subscription_id, key="unused")
        self.adapter.cancel_subscription(subscription_id=state.subscription_id, key="unused")
        customer = self.customer()
        for _ in range(2):
            self.adapter.delete_customer(customer_id=customer)
        self.adapter.is_customer_deleted(customer_id=customer)
        self.adapter.customer_made_for(customer_id=customer)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.controls.now, UTC)
