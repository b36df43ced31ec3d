"""The client of the controls: what a merchant, a bank or a network might do to the double."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import urllib3

Thing = dict[str, Any]
Order = str | Sequence[str]
_SECONDS = 600


class ControlRefused(RuntimeError):
    """The double does not do what it was asked; the message says why."""


@dataclass(frozen=True)
class LoggedRequest:
    """One request to the API; `status` is 0 where the connection broke off and None while it runs."""

    id: str
    method: str
    path: str
    params: Thing
    idempotency_key: str | None
    status: int | None
    replayed: bool


class Controls:
    """Steers one running double."""

    def __init__(self, url: str, secret_key: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {secret_key}", "Content-Type": "application/json"}

    # Time

    @property
    def now(self) -> int:
        """The double's present second."""
        return int(self._ask("GET", "clock")["now"])

    def set_clock(self, moment: int) -> None:
        """Set the time of a double in which nothing has happened yet, backwards too."""
        self._tell("clock", to=moment)

    def advance(self, seconds: int) -> int:
        """Let time pass with all that falls due on the way, deliveries included; return the new time."""
        return int(self._tell("advance", seconds=seconds)["now"])

    def advance_to(self, moment: int) -> int:
        """Like `advance`, up to a moment."""
        return int(self._tell("advance", to=moment)["now"])

    def settle(self, timeout: float = 30) -> int:
        """Return once no delivery is due, with the number of those that wait for later or are held."""
        return int(self._tell("settle", timeout=timeout)["waiting"])

    def reset(self) -> None:
        """Forget everything but the webhook endpoints; the time is the real one again."""
        self._tell("reset")

    # Deliveries

    def point(self, url: str, secret: str) -> None:
        """Send every event to a URL, signed with the secret."""
        self._tell("endpoint", url=url, secret=secret)

    def deliveries(self, state: str = "pending") -> list[Thing]:
        """Return the deliveries that are pending (held ones too), delivered or given_up."""
        return list(self._ask("GET", f"deliveries?state={state}")["deliveries"])

    def duplicate(self, times: int = 1, *, types: Sequence[str] | None = None, count: int | None = 1) -> None:
        """Send the next `count` deliveries `times` times more."""
        self._tell("deliveries/duplicate", times=times, types=types, count=count)

    def drop(
        self, *, types: Sequence[str] | None = None, count: int | None = 1, reported_as: str = "failed"
    ) -> None:
        """Lose the next `count` deliveries; Stripe believes them failed or delivered."""
        self._tell("deliveries/drop", types=types, count=count, reported_as=reported_as)

    def delay(self, seconds: int, *, types: Sequence[str] | None = None, count: int | None = 1) -> None:
        """Let the next `count` deliveries leave later."""
        self._tell("deliveries/delay", seconds=seconds, types=types, count=count)

    def corrupt(
        self, how: str = "signature", *, types: Sequence[str] | None = None, count: int | None = 1
    ) -> None:
        """Spoil the next `count` deliveries: signature, body, secret, old, future or missing."""
        self._tell("deliveries/corrupt", how=how, types=types, count=count)

    def hold(self, *, types: Sequence[str] | None = None) -> None:
        """Keep deliveries back until `release`."""
        self._tell("deliveries/hold", types=types)

    def release(self, order: Order = "original", *, seed: int | None = None) -> int:
        """Send what is held: original, reversed, shuffled, or in an order of event ids."""
        return int(self._tell("deliveries/release", order=order, seed=seed)["released"])

    def behave(self) -> None:
        """Disturb neither deliveries nor requests any more."""
        self._tell("deliveries/behave")
        self._tell("requests/behave")

    def replay(
        self,
        *,
        types: Sequence[str] | None = None,
        events: Sequence[str] | None = None,
        order: Order = "original",
        seed: int | None = None,
    ) -> int:
        """Deliver past events once more; return how many."""
        return int(
            self._tell("deliveries/replay", types=types, events=events, order=order, seed=seed)["replayed"]
        )

    def reissue(self, event: str) -> str:
        """Tell the same event again under a new id, which is returned."""
        return str(self._tell("events/reissue", event=event)["event"])

    # Requests

    def requests(self, method: str | None = None, path: str = "/") -> list[LoggedRequest]:
        """Return the logged requests whose path begins like this, oldest first."""
        found = [LoggedRequest(**entry) for entry in self._ask("GET", "requests")["requests"]]
        return [item for item in found if method in (None, item.method) and item.path.startswith(path)]

    def forget_requests(self) -> None:
        """Begin the log of requests anew."""
        self._ask("DELETE", "requests")

    def fail(
        self,
        status: int,
        *,
        count: int | None = 1,
        method: str | None = None,
        path: str | None = None,
        saved: bool = False,
    ) -> None:
        """Answer the next matching requests 409, 429 or 500 and do nothing."""
        self._tell("requests/fail", status=status, count=count, method=method, path=path, saved=saved)

    def error_after_commit(
        self,
        *,
        count: int | None = 1,
        method: str | None = None,
        path: str | None = None,
        saved: bool = False,
    ) -> None:
        """Do the work of the next matching requests and answer 500; `saved`: their keys keep answering it."""
        self._tell("requests/error_after_commit", count=count, method=method, path=path, saved=saved)

    def timeout_after_commit(
        self, seconds: float = 0, *, count: int | None = 1, method: str | None = None, path: str | None = None
    ) -> None:
        """Do the work of the next matching requests and break off, after that much silence."""
        self._tell("requests/timeout_after_commit", seconds=seconds, count=count, method=method, path=path)

    def slow(
        self, seconds: float, *, count: int | None = 1, method: str | None = None, path: str | None = None
    ) -> None:
        """Begin the next matching requests late."""
        self._tell("requests/slow", seconds=seconds, count=count, method=method, path=path)

    # People and banks

    def authenticate(self, intent: str, *, succeeds: bool = True) -> Thing:
        """Let the cardholder agree, or not, to what a setup or payment intent asks for."""
        return self._tell("intents/authenticate", intent=intent, succeeds=succeeds)

    def change_card(self, payment_method: str, **changes: str | None) -> Thing:
        """Change a card: `decline_code` (None: accepted) and `asks` (never, always, on_session)."""
        return self._tell("cards", payment_method=payment_method, **changes)

    def pay_out_of_band(self, invoice: str) -> Thing:
        """Note that an invoice was paid outside of Stripe."""
        return self._tell("invoices/pay_out_of_band", invoice=invoice)

    def credit(self, invoice: str, amount: int | None = None) -> Thing:
        """Write a credit note for an invoice and return it."""
        return self._tell("invoices/credit", invoice=invoice, amount=amount)

    def open_dispute(self, payment_intent: str, *, amount: int | None = None, withdraw: bool = True) -> Thing:
        """Dispute the charge that paid an intent."""
        return self._tell("disputes/open", payment_intent=payment_intent, amount=amount, withdraw=withdraw)

    def withdraw(self, dispute: str) -> Thing:
        """Take the disputed money."""
        return self._tell("disputes/withdraw", dispute=dispute)

    def reinstate(self, dispute: str) -> Thing:
        """Give the disputed money back."""
        return self._tell("disputes/reinstate", dispute=dispute)

    def close_dispute(self, dispute: str, *, won: bool, reinstate: bool = True) -> Thing:
        """Decide a dispute; a won one gives the money back unless told otherwise."""
        return self._tell("disputes/close", dispute=dispute, won=won, reinstate=reinstate)

    def refund(self, payment_intent: str, amount: int | None = None) -> Thing:
        """Refund at the dashboard the charge that paid an intent."""
        return self._tell("refunds/create", payment_intent=payment_intent, amount=amount)

    def fail_refund(self, refund: str) -> Thing:
        """Let a refund fail after all."""
        return self._tell("refunds/fail", refund=refund)

    def after_retries(self, outcome: str) -> None:
        """Set what becomes of a subscription after the last retry: cancel, unpaid or leave."""
        self._tell("settings", after_retries=outcome)

    def _tell(self, name: str, **body: Any) -> Thing:
        return self._ask("POST", name, body)

    def _ask(self, method: str, name: str, body: Thing | None = None) -> Thing:
        content = None if body is None else json.dumps(body)
        response = urllib3.request(
            method,
            f"{self._url}/_control/{name}",
            body=content,
            headers=self._headers,
            timeout=_SECONDS,
            retries=False,
        )
        answer: Thing = response.json()
        if response.status != 200:
            raise ControlRefused(answer["error"]["message"])
        return answer
