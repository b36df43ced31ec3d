"""Carrying one delivery to its endpoint, at least once, again after every failure for three days."""

import json
from dataclasses import dataclass

import urllib3

from devstack.stripe.events.rules import use_rule
from devstack.stripe.events.signing import Letter, corrupt, sign
from devstack.stripe.events.telling import shown
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing

_THREE_DAYS = 3 * 86_400
_PAUSES = (5, 30, 300, 1800, 7200, 18_000, 36_000)
_SECONDS = 10


@dataclass(frozen=True)
class _Errand:
    url: str
    letters: list[Letter]
    pretended: int = 0  # the answer that is noted where nothing is sent


class Postman:
    """Sends what is due, one delivery at a time, never while the account is locked."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._pool = urllib3.PoolManager(retries=False, timeout=_SECONDS, maxsize=4)

    def send(self, identifier: str) -> None:
        """Try one delivery and note how it went."""
        with self._account.unit():
            errand = self._prepare(identifier)
        if errand is None:
            return
        answers = [self._post(errand.url, letter) for letter in errand.letters] or [errand.pretended]
        with self._account.unit():
            self._note(identifier, answers)

    def _prepare(self, identifier: str) -> _Errand | None:
        account = self._account
        delivery = account.store.get("_delivery", identifier)
        if delivery is None:
            return None
        endpoint = account.store.get("webhook_endpoint", delivery["endpoint"])
        event = account.store.get("event", delivery["event"])
        if endpoint is None or event is None:
            account.store.remove("_delivery", identifier)
            _tell_invoice(account, delivery)
            return None
        if self._put_off(delivery):
            return None
        return self._errand(delivery, endpoint, json.dumps(shown(account, event), indent=2).encode())

    def _put_off(self, delivery: Thing) -> bool:
        about = delivery["about"][0]
        if use_rule(self._account, "hold", about):
            delivery["held"] = True
            return True
        if not delivery["delayed"]:
            rule = use_rule(self._account, "delay", about)
            if rule:
                delivery.update(delayed=True, due_at=self._account.now + rule["seconds"])
                return True
        return False

    def _errand(self, delivery: Thing, endpoint: Thing, body: bytes) -> _Errand:
        account, about, url = self._account, delivery["about"][0], endpoint["url"]
        dropped = use_rule(account, "drop", about)
        if dropped:
            return _Errand(url, [], 200 if dropped["reported_as"] == "delivered" else 0)
        wrong = use_rule(account, "corrupt", about)
        if wrong:
            return _Errand(url, [corrupt(body, endpoint["_secret"], wrong["how"])])
        repeated = use_rule(account, "duplicate", about)
        copies = 1 + (repeated["times"] if repeated else 0)
        return _Errand(url, [sign(body, endpoint["_secret"]) for _ in range(copies)])

    def _post(self, url: str, letter: Letter) -> int:
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Stripe/1.0"}
        if letter.signature is not None:
            headers["Stripe-Signature"] = letter.signature
        try:
            return self._pool.request("POST", url, body=letter.body, headers=headers, redirect=False).status
        except urllib3.exceptions.HTTPError:
            return 0

    def _note(self, identifier: str, answers: list[int]) -> None:
        account = self._account
        delivery = account.store.get("_delivery", identifier)
        if delivery is None:
            return
        delivery["attempts"] += 1
        delivery["answer"] = answers[0]
        if any(200 <= answer < 300 for answer in answers):
            delivery["delivered_at"] = account.now
            _move(account, delivery, "_delivered")
            _tell_invoice(account, delivery)
            return
        delivery["due_at"] = account.now + _PAUSES[min(delivery["attempts"], len(_PAUSES)) - 1]
        if delivery["due_at"] > delivery["created"] + _THREE_DAYS:
            _move(account, delivery, "_given_up")


def _move(account: Account, delivery: Thing, kind: str) -> None:
    account.store.remove("_delivery", delivery["id"])
    account.add({**delivery, "object": kind})


def _tell_invoice(account: Account, delivery: Thing) -> None:
    if delivery["about"][0] != "invoice.created":
        return
    invoice = account.store.get("invoice", delivery["about"][1])
    if invoice is not None and invoice["status"] == "draft":
        invoice["webhooks_delivered_at"] = account.now
