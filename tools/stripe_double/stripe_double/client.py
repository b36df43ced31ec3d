"""The client of the control API, which moves the time of a running double and injects faults."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import urllib3

Json = dict[str, Any]
Order = str | Sequence[str]
_TIMEOUT_SECONDS = 600


class ControlError(RuntimeError):
    """The double rejected the request; the message has the reason."""


class Requests(TypedDict, total=False):
    """The requests of a fault: the next `count` (1; None: all) with this method and prefix of the path."""

    count: int | None
    method: str | None
    path: str | None


class Webhooks(TypedDict, total=False):
    """The webhooks of a fault: the next `count` (1; None: all) of these event types."""

    count: int | None
    types: Sequence[str] | None


@dataclass(frozen=True)
class LoggedRequest:
    """One request to the API; `status` is 0 where the connection was dropped and None while it runs."""

    id: str
    method: str
    path: str
    params: Json
    idempotency_key: str | None
    status: int | None
    replayed: bool


class _Connection:
    def __init__(self, url: str, secret_key: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {secret_key}", "Content-Type": "application/json"}

    def _post(self, name: str, **body: Any) -> Json:
        return self._request("POST", name, body)

    def _request(self, method: str, name: str, body: Json | None = None) -> Json:
        response = urllib3.request(
            method,
            f"{self._url}/_control/{name}",
            body=None if body is None else json.dumps(body),
            headers=self._headers,
            timeout=_TIMEOUT_SECONDS,
            retries=False,
        )
        result: Json = response.json()
        if response.status != 200:
            raise ControlError(result["error"]["message"])
        return result


class _Time(_Connection):
    @property
    def now(self) -> int:
        """The double's current second."""
        return int(self._request("GET", "clock")["now"])

    def set_clock(self, timestamp: int) -> None:
        """Set the time of a double without events, also backwards."""
        self._post("clock", to=timestamp)

    def advance(self, seconds: int) -> int:
        """Advance the time and do everything due, webhooks included; return the new time."""
        return int(self._post("advance", seconds=seconds)["now"])

    def advance_to(self, timestamp: int) -> int:
        """Like `advance`, up to a timestamp."""
        return int(self._post("advance", to=timestamp)["now"])

    def settle(self, timeout: float = 30) -> int:
        """Wait until no webhook is due; return the number of later or held ones."""
        return int(self._post("settle", timeout=timeout)["waiting"])

    def reset(self) -> None:
        """Remove everything but the webhook endpoint, and reset to the real time."""
        self._post("reset")

    def clear_faults(self) -> None:
        """Remove all faults of webhooks and requests; held webhooks stay held."""
        self._post("deliveries/clear_faults")
        self._post("requests/clear_faults")


class _Webhooks(_Connection):
    def set_webhook_endpoint(self, url: str | None, secret: str) -> None:
        """Set the endpoint of all events and its secret; None disables it."""
        self._post("endpoint", url=url, secret=secret)

    def deliveries(self, state: str = "pending") -> list[Json]:
        """Return the deliveries that are pending (held ones too), delivered or given_up."""
        return list(self._request("GET", f"deliveries?state={state}")["deliveries"])

    def duplicate(self, times: int = 1, **webhooks: Unpack[Webhooks]) -> None:
        """Send webhooks `times` additional times."""
        self._post("deliveries/duplicate", times=times, **webhooks)

    def drop(self, *, reported_as: str = "failed", **webhooks: Unpack[Webhooks]) -> None:
        """Drop webhooks; the double records them as `failed` or `delivered`."""
        self._post("deliveries/drop", reported_as=reported_as, **webhooks)

    def delay(self, seconds: int, **webhooks: Unpack[Webhooks]) -> None:
        """Send webhooks later."""
        self._post("deliveries/delay", seconds=seconds, **webhooks)

    def corrupt(self, how: str = "signature", **webhooks: Unpack[Webhooks]) -> None:
        """
        Corrupt webhooks.

        `how`: a random `signature`, one changed bit of the `body`, another `secret`, an `old` or a
        `future` time, a `missing` signature; or, correctly signed, `livemode` true or another `api_version`.
        """
        self._post("deliveries/corrupt", how=how, **webhooks)

    def hold(self, *, types: Sequence[str] | None = None) -> None:
        """Hold webhooks until `release`."""
        self._post("deliveries/hold", types=types)

    def release(self, order: Order = "original", *, seed: int | None = None) -> int:
        """Send the held webhooks: original, reversed, shuffled, or by event ids; return their number."""
        return int(self._post("deliveries/release", order=order, seed=seed)["released"])

    def replay(
        self,
        *,
        types: Sequence[str] | None = None,
        events: Sequence[str] | None = None,
        order: Order = "original",
        seed: int | None = None,
    ) -> int:
        """Send past events again; return their number."""
        body = {"types": types, "events": events, "order": order, "seed": seed}
        return int(self._post("deliveries/replay", **body)["replayed"])

    def reissue(self, event: str) -> str:
        """Emit the same event under a new id; return the id."""
        return str(self._post("events/reissue", event=event)["event"])


class _Requests(_Connection):
    def requests(self, method: str | None = None, path: str = "/") -> list[LoggedRequest]:
        """Return the logged requests with this prefix of the path, oldest first."""
        entries = [LoggedRequest(**entry) for entry in self._request("GET", "requests")["requests"]]
        return [entry for entry in entries if method in (None, entry.method) and entry.path.startswith(path)]

    def clear_requests(self) -> None:
        """Clear the log of requests."""
        self._request("DELETE", "requests")

    def fail(
        self,
        status: int,
        *,
        saved: bool = False,
        code: str | None = None,
        message: str | None = None,
        **requests: Unpack[Requests],
    ) -> None:
        """
        Respond to requests with this status and do nothing; `saved`: save the error under the idempotency key.

        409, 429 and 500 have Stripe's usual code and message; other statuses have these.
        """
        self._post("requests/fail", status=status, saved=saved, code=code, message=message, **requests)

    def error_after_commit(self, *, saved: bool = False, **requests: Unpack[Requests]) -> None:
        """Commit requests and return 500; `saved`: save the error under the idempotency key."""
        self._post("requests/error_after_commit", saved=saved, **requests)

    def timeout_after_commit(self, seconds: float = 0, **requests: Unpack[Requests]) -> None:
        """Commit requests and, after these seconds, drop the connection."""
        self._post("requests/timeout_after_commit", seconds=seconds, **requests)

    def slow(self, seconds: float, **requests: Unpack[Requests]) -> None:
        """Begin requests late."""
        self._post("requests/slow", seconds=seconds, **requests)


class _Dashboard(_Connection):
    def authenticate(self, intent: str, *, succeeds: bool = True) -> Json:
        """Complete the 3-D Secure challenge of a setup or payment intent."""
        return self._post("intents/authenticate", intent=intent, succeeds=succeeds)

    def settle_payment(self, payment_intent: str, *, decline_code: str | None = None) -> Json:
        """End the processing of a payment: the bank pays, or declines it."""
        return self._post("intents/settle", payment_intent=payment_intent, decline_code=decline_code)

    def change_card(self, payment_method: str, *, decline_code: str | None) -> Json:
        """Decline the card's later charges, or accept them (None)."""
        return self._post("cards", payment_method=payment_method, decline_code=decline_code)

    def set_status(self, subscription: str, status: str) -> Json:
        """Set a subscription to `trialing` until the end of its period, or to `paused`."""
        return self._post("subscriptions/set_status", subscription=subscription, status=status)

    def pay_out_of_band(self, invoice: str) -> Json:
        """Mark an invoice as paid outside of Stripe."""
        return self._post("invoices/pay_out_of_band", invoice=invoice)

    def create_invoice(
        self, customer: str, amount: int, currency: str | None = None, *, product: str | None = None
    ) -> Json:
        """Invoice a customer for one item outside of subscriptions, and collect it at once."""
        body = {"customer": customer, "amount": amount, "currency": currency, "product": product}
        return self._post("invoices/create", **body)

    def pay_invoice_part(self, invoice: str, amount: int) -> Json:
        """Collect a part of an open invoice by a payment of its own."""
        return self._post("invoices/pay_part", invoice=invoice, amount=amount)

    def warn_of_fraud(self, payment_intent: str) -> Json:
        """Send an early fraud warning of the charge that paid an intent."""
        return self._post("fraud_warnings/create", payment_intent=payment_intent)

    def emit_event(self, type: str, object: Json) -> None:
        """Send an event of any type about any object."""
        self._post("events/emit", type=type, object=object)

    def create_credit_note(
        self, invoice: str, amount: int | None = None, *, out_of_band: bool = False
    ) -> Json:
        """Issue a credit note for an invoice; `out_of_band`: its money was returned outside of Stripe."""
        return self._post("credit_notes/create", invoice=invoice, amount=amount, out_of_band=out_of_band)

    def void_credit_note(self, credit_note: str) -> Json:
        """Void the credit note of a paid invoice."""
        return self._post("credit_notes/void", credit_note=credit_note)

    def open_dispute(self, payment_intent: str, *, amount: int | None = None, withdraw: bool = True) -> Json:
        """Dispute the charge that paid an intent."""
        return self._post("disputes/open", payment_intent=payment_intent, amount=amount, withdraw=withdraw)

    def withdraw_funds(self, dispute: str) -> Json:
        """Withdraw the disputed amount."""
        return self._post("disputes/withdraw", dispute=dispute)

    def reinstate_funds(self, dispute: str, amount: int | None = None) -> Json:
        """Reinstate the disputed amount, or a part of it."""
        return self._post("disputes/reinstate", dispute=dispute, amount=amount)

    def close_dispute(self, dispute: str, *, won: bool, reinstate: bool = True) -> Json:
        """Close a dispute; a won one reinstates the amount unless `reinstate` is false."""
        return self._post("disputes/close", dispute=dispute, won=won, reinstate=reinstate)

    def refund(self, payment_intent: str, amount: int | None = None) -> Json:
        """Refund the charge that paid an intent."""
        return self._post("refunds/create", payment_intent=payment_intent, amount=amount)

    def pay_out(self) -> Json:
        """Pay the balance of each currency to the account's bank, as Stripe does every day."""
        return self._post("payouts/create")

    def fail_refund(self, refund: str) -> Json:
        """Fail a refund after its success."""
        return self._post("refunds/fail", refund=refund)

    def after_retries(self, outcome: str) -> None:
        """Set the effect of the last failed retry on a subscription: cancel, unpaid or leave."""
        self._post("settings", after_retries=outcome)

    def signed_at(self, time: str) -> None:
        """Sign webhooks with the `real` time, or with the `account`'s, where the receiver's clock is moved, too."""
        self._post("settings", signed_at=time)

    def off_session(self, outcome: str) -> None:
        """
        Set the response to off-session charges: `action` or `decline` if they need 3-D Secure.

        With `processing`, every one of them waits for `settle_payment`.
        """
        self._post("settings", off_session=outcome)


class ControlClient(_Time, _Webhooks, _Requests, _Dashboard):
    """Controls one running double."""
