"""The payment provider as its two honest callers see it: a wallet's card form, and a bookkeeper with the secret key."""

from typing import Any
from urllib.parse import urlencode

import urllib3

from devstack.stripe.account import publishable_key
from devstack.stripe.client import ControlClient

Thing = dict[str, Any]
_RETURN_URL = "https://wallet.example/card"


class ProviderRefused(RuntimeError):
    """The provider answered with an error; the message is its own."""


class Provider:
    """One account at the provider, which is a double whose time can be moved."""

    def __init__(self, url: str, secret_key: str) -> None:
        self._url = url
        self._secret_key = secret_key
        self._pool = urllib3.PoolManager(retries=False, timeout=30)

    @property
    def controls(self) -> ControlClient:
        """What moves its time."""
        return ControlClient(self._url, self._secret_key)

    def capture_card(self, client_secret: str, card: str) -> Thing:
        """
        Confirm a setup intent as the card form inside a wallet does: with the client secret and the public key.

        `card` names one of Stripe's test payment methods, such as `pm_card_visa`.
        """
        intent = client_secret.partition("_secret_")[0]
        fields = {"client_secret": client_secret, "payment_method": card, "return_url": _RETURN_URL}
        key = publishable_key(self._secret_key)
        return self._ask("POST", f"setup_intents/{intent}/confirm", key=key, fields=fields)

    def customer(self, identifier: str) -> Thing:
        """Return a customer's record."""
        return self._ask("GET", f"customers/{identifier}")

    def subscription(self, identifier: str) -> Thing:
        """Return a subscription's record."""
        return self._ask("GET", f"subscriptions/{identifier}")

    def invoices(self, subscription: str) -> list[Thing]:
        """Return the invoices of a subscription, the first one first."""
        found = self._ask("GET", "invoices", fields={"subscription": subscription, "limit": "100"})
        return list(reversed(found["data"]))

    def untaken_events(self) -> list[str]:
        """Return the types of the events that the service has not taken yet."""
        found = self._ask("GET", "events", fields={"delivery_success": "false", "limit": "100"})
        return [event["type"] for event in found["data"]]

    def _ask(
        self, method: str, path: str, *, key: str | None = None, fields: dict[str, str] | None = None
    ) -> Thing:
        place, content = f"{self._url}/v1/{path}", urlencode(fields or {})
        headers = {"Authorization": f"Bearer {key or self._secret_key}"}
        if method == "GET":
            response = self._pool.request(method, f"{place}?{content}", headers=headers)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            response = self._pool.request(method, place, body=content, headers=headers)
        found: Thing = response.json()
        if response.status != 200:
            raise ProviderRefused(f"{method} {path}: {found['error'].get('message')}")
        return found
