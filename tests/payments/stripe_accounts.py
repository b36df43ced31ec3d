"""The interface by which tests control a Stripe account, and the account of the Stripe double."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import stripe

from devstack.ports import free_port
from payments.stripe.client import BillingClient
from stripe_double.client import ControlClient

VISA = "pm_card_visa"
DECLINES = "pm_card_chargeCustomerFail"
NEEDS_CONFIRMATION = "pm_card_authenticationRequired"
_RETURN_URL = "https://wallet.example/back"


class StripeAccount(Protocol):
    """What cardholders, banks, the merchant's dashboard and time do to a Stripe account."""

    def now(self) -> datetime:
        """Return the account's time."""

    def pass_time(self, seconds: int) -> None:
        """Let time pass with all that falls due on the way."""

    def capture(self, customer_id: str, card: str = VISA) -> str:
        """Capture a card as a wallet does; return the setup intent's id."""

    def decline_from_now(self, payment_method_id: str, code: str | None) -> None:
        """Let a captured card be declined for this reason, or accepted again."""

    def delete_customer(self, customer_id: str) -> None:
        """Delete a customer for good, as at Stripe's dashboard; its subscriptions end at once."""

    def confirm(self, client_secret: str) -> None:
        """Confirm the intent as the card holder."""

    def refund(self, payment_intent: str, amount: int | None = None) -> str:
        """Refund a payment, whole or in part."""

    def fail_refund(self, refund: str) -> None:
        """Fail a refund after its success."""

    def dispute(self, payment_intent: str, amount: int | None = None, *, withdraw: bool = True) -> str:
        """Dispute a payment; by default the money is withdrawn."""

    def withdraw(self, dispute: str) -> None:
        """Take the disputed money."""

    def reinstate(self, dispute: str) -> None:
        """Give the disputed money back."""

    def pay_out_of_band(self, invoice: str) -> None:
        """Note that an invoice was paid outside of Stripe."""

    def lose_deliveries(self) -> None:
        """Let no webhook arrive from now on."""


class RunningDouble(Protocol):
    """A double's process: where it is, and how it is controlled."""

    @property
    def url(self) -> str:
        """The base URL for Stripe's SDK."""

    @property
    def secret_key(self) -> str:
        """The account's secret key."""

    @property
    def controls(self) -> ControlClient:
        """The client of the control API."""


class DoubleAccount:
    """The double, which runs out of process."""

    def __init__(self, server: RunningDouble) -> None:
        self.server, self.controls = server, server.controls
        self.client = stripe.StripeClient(server.secret_key, base_addresses={"api": server.url})
        self.v1: Any = self.client.v1

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.controls.now, UTC)

    def pass_time(self, seconds: int) -> None:
        self.controls.advance(seconds)

    def capture(self, customer_id: str, card: str = VISA) -> str:
        intent = self.v1.setup_intents.create(
            {"customer": customer_id, "usage": "off_session", "automatic_payment_methods": {"enabled": True}}
        )
        parameters = {"payment_method": card, "return_url": _RETURN_URL}
        if self.v1.setup_intents.confirm(intent.id, parameters).status == "requires_action":
            self.controls.authenticate(intent.id)
        return str(intent.id)

    def decline_from_now(self, payment_method_id: str, code: str | None) -> None:
        self.controls.change_card(payment_method_id, decline_code=code)

    def delete_customer(self, customer_id: str) -> None:
        self.v1.customers.delete(customer_id)

    def confirm(self, client_secret: str) -> None:
        self.controls.authenticate(client_secret.split("_secret_")[0])

    def refund(self, payment_intent: str, amount: int | None = None) -> str:
        return str(self.controls.refund(payment_intent, amount)["id"])

    def fail_refund(self, refund: str) -> None:
        self.controls.fail_refund(refund)

    def dispute(self, payment_intent: str, amount: int | None = None, *, withdraw: bool = True) -> str:
        return str(self.controls.open_dispute(payment_intent, amount=amount, withdraw=withdraw)["id"])

    def withdraw(self, dispute: str) -> None:
        self.controls.withdraw_funds(dispute)

    def reinstate(self, dispute: str) -> None:
        self.controls.reinstate_funds(dispute)

    def pay_out_of_band(self, invoice: str) -> None:
        self.controls.pay_out_of_band(invoice)

    def lose_deliveries(self) -> None:
        self.controls.set_webhook_endpoint(
            f"http://127.0.0.1:{free_port()}/", f"whsec_{secrets.token_hex(16)}"
        )

    def events(self, *types: str) -> list[Any]:
        """Return the account's events, oldest first; all of them where no type is named."""
        chosen = {"types": list(types)} if types else {}
        return list(self.v1.events.list({"limit": 100, **chosen}).auto_paging_iter())[::-1]

    def rows(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """Return a list's rows as plain JSON, oldest first: the SDK's objects take long to be made."""
        newest_first: list[dict[str, Any]] = []
        query["limit"] = 100
        while True:
            page: Any = self.client.raw_request("get", path, **query).data
            newest_first += page["data"]
            if not page["has_more"]:
                return newest_first[::-1]
            query["starting_after"] = newest_first[-1]["id"]

    def webhooks(self, *types: str, since: datetime | None = None) -> list[dict[str, Any]]:
        """Return the account's events as they are sent, oldest first."""
        # Stripe takes at most 20 types.
        query: dict[str, Any] = {"types": list(types)} if 0 < len(types) <= 20 else {}
        if since is not None:
            query["created"] = {"gte": int(since.timestamp())}
        events = self.rows("/v1/events", **query)
        return [event for event in events if not types or event["type"] in types]

    def posts(self, path: str) -> list[Any]:
        """Return the logged POST requests whose path is exactly this."""
        return [request for request in self.controls.requests("POST", path) if request.path == path]

    @contextmanager
    def frozen_log(self) -> Iterator[list[Any]]:
        """Yield a list that holds, after the block, every request but GET that the block has caused."""
        earlier_ids = {request.id for request in self.controls.requests()}
        commands: list[Any] = []
        yield commands
        new = [request for request in self.controls.requests() if request.id not in earlier_ids]
        commands += [request for request in new if request.method != "GET"]


@dataclass(frozen=True)
class SeamCase:
    """A Stripe account and the client that talks to it."""

    account: StripeAccount
    client: BillingClient
