"""A client of a Stripe account: the card form of a wallet, and reads with the secret key."""

from typing import Any
from urllib.parse import urlencode

import urllib3

from stripe_double.account import publishable_key
from stripe_double.client import ControlClient

StripeObject = dict[str, Any]
_RETURN_URL = "https://wallet.example/card"


class StripeRefused(RuntimeError):
    """Stripe returned an error; the message is Stripe's."""


class StripeAccount:
    """One account at the Stripe double."""

    def __init__(self, url: str, secret_key: str) -> None:
        self._url = url
        self._secret_key = secret_key
        self._pool = urllib3.PoolManager(retries=False, timeout=30)

    @property
    def controls(self) -> ControlClient:
        """The client of its control API."""
        return ControlClient(self._url, self._secret_key)

    def capture_card(self, client_secret: str, card: str) -> StripeObject:
        """
        Confirm a setup intent as the card form inside a wallet does: with the client secret and the public key.

        `card` names one of Stripe's test payment methods, such as `pm_card_visa`.
        """
        intent = client_secret.partition("_secret_")[0]
        fields = {"client_secret": client_secret, "payment_method": card, "return_url": _RETURN_URL}
        key = publishable_key(self._secret_key)
        return self._request("POST", f"setup_intents/{intent}/confirm", key=key, fields=fields)

    def customer(self, identifier: str) -> StripeObject:
        """Return a customer's record."""
        return self._request("GET", f"customers/{identifier}")

    def subscription(self, identifier: str) -> StripeObject:
        """Return a subscription's record."""
        return self._request("GET", f"subscriptions/{identifier}")

    def invoices(self, subscription: str) -> list[StripeObject]:
        """Return the invoices of a subscription, the first one first."""
        page = self._request("GET", "invoices", fields={"subscription": subscription, "limit": "100"})
        return list(reversed(page["data"]))

    def paid_invoices(self) -> list[StripeObject]:
        """Return every invoice that was paid, the newest first."""
        invoices: list[StripeObject] = []
        while True:
            after = {"starting_after": invoices[-1]["id"]} if invoices else {}
            page = self._request("GET", "invoices", fields={"status": "paid", "limit": "100", **after})
            invoices += page["data"]
            if not page["has_more"]:
                return invoices

    def invoices_of_purchase(self, identifier: str) -> list[StripeObject]:
        """Return the paid invoices of a purchase of credits, by its id at the service."""
        return [row for row in self.paid_invoices() if row["metadata"].get("operation") == identifier]

    def undelivered_events(self) -> list[str]:
        """Return the types of the undelivered events."""
        page = self._request("GET", "events", fields={"delivery_success": "false", "limit": "100"})
        return [event["type"] for event in page["data"]]

    def _request(
        self, method: str, path: str, *, key: str | None = None, fields: dict[str, str] | None = None
    ) -> StripeObject:
        url, content = f"{self._url}/v1/{path}", urlencode(fields or {})
        headers = {"Authorization": f"Bearer {key or self._secret_key}"}
        if method == "GET":
            response = self._pool.request(method, f"{url}?{content}", headers=headers)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            response = self._pool.request(method, url, body=content, headers=headers)
        result: StripeObject = response.json()
        if response.status != 200:
            raise StripeRefused(f"{method} {path}: {result['error'].get('message')}")
        return result
