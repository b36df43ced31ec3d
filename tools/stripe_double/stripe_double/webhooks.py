"""Webhooks: signed, sent at least once, retried for three days, with fault injection."""

import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass
from typing import Any, Literal

import urllib3

from stripe_double.account import Account
from stripe_double.events import with_pending_webhooks
from stripe_double.store import Resource, new_id

_THREE_DAYS = 3 * 86_400
_RETRY_SECONDS = (5, 30, 300, 1800, 7200, 18_000, 36_000)
_TIMEOUT_SECONDS = 10
_OUTSIDE_TOLERANCE = 3600
CORRUPTIONS = ("signature", "body", "secret", "old", "future", "missing", "livemode", "api_version")
_FOREIGN_MEMBERS: dict[str, dict[str, object]] = {
    "livemode": {"livemode": True},
    "api_version": {"api_version": "2020-08-27"},
}
FaultAction = Literal["corrupt", "delay", "drop", "duplicate", "hold"]


@dataclass(frozen=True)
class SignedBody:
    """The content of a POST to an endpoint."""

    body: bytes
    signature: str | None


def sign(body: bytes, secret: str, timestamp: int | None = None) -> SignedBody:
    """Return the body with Stripe's signature, by default with the real time."""
    timestamp = int(time.time()) if timestamp is None else timestamp
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return SignedBody(body, f"t={timestamp},v1={digest}")


def corrupt(body: bytes, secret: str, how: str) -> SignedBody:
    """Return a corrupted post."""
    now = int(time.time())
    if how == "old":
        return sign(body, secret, now - _OUTSIDE_TOLERANCE)
    if how == "future":
        return sign(body, secret, now + _OUTSIDE_TOLERANCE)
    if how in _FOREIGN_MEMBERS:
        return sign(json.dumps({**json.loads(body), **_FOREIGN_MEMBERS[how]}).encode(), secret)
    if how == "secret":
        return sign(body, f"whsec_{secrets.token_hex(24)}")
    if how == "body":
        return SignedBody(_flip_one_bit(body), sign(body, secret).signature)
    if how == "missing":
        return SignedBody(body, None)
    return SignedBody(body, f"t={now},v1={secrets.token_hex(32)}")


def _flip_one_bit(body: bytes) -> bytes:
    position = secrets.randbelow(len(body))
    return body[:position] + bytes([body[position] ^ 1]) + body[position + 1 :]


def add_delivery_fault(
    account: Account, action: FaultAction, *, types: list[str] | None, count: int | None, **options: Any
) -> Resource:
    """Inject a fault into the next `count` deliveries of these event types; None means all."""
    fault = {"object": "_delivery_fault", "id": new_id("fault"), "action": action, "types": types}
    return account.add({**fault, "remaining": count, **options})


def clear_delivery_faults(account: Account, action: FaultAction | None = None) -> None:
    """Remove all faults of deliveries, or those of one kind."""
    for fault in account.store.all("_delivery_fault"):
        if action in (None, fault["action"]):
            account.store.remove("_delivery_fault", fault["id"])


def _use_fault(account: Account, action: FaultAction, event_type: str) -> Resource | None:
    for row in account.store.all("_delivery_fault"):
        if row["action"] != action or (row["types"] is not None and event_type not in row["types"]):
            continue
        fault = account.store.get("_delivery_fault", row["id"]) or row
        if fault["remaining"] is not None:
            fault["remaining"] -= 1
            if fault["remaining"] <= 0:
                account.store.remove("_delivery_fault", fault["id"])
        return fault
    return None


@dataclass(frozen=True)
class _Attempt:
    url: str
    posts: list[SignedBody]
    assumed_status: int = 0  # the recorded response of a dropped webhook


class WebhookSender:
    """Sends one delivery at a time, never while the account is locked."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._pool = urllib3.PoolManager(retries=False, timeout=_TIMEOUT_SECONDS, maxsize=4)

    def send(self, delivery_id: str) -> None:
        """Try one delivery and record how it went."""
        with self._account.transaction():
            attempt = self._prepare(delivery_id)
        if attempt is None:
            return
        statuses = [self._post(attempt.url, post) for post in attempt.posts] or [attempt.assumed_status]
        with self._account.transaction():
            self._record(delivery_id, statuses)

    def _prepare(self, delivery_id: str) -> _Attempt | None:
        account = self._account
        delivery = account.store.get("_delivery", delivery_id)
        if delivery is None:
            return None
        endpoint = account.store.get("_endpoint", "endpoint")
        event = account.store.get("event", delivery["event"])
        if endpoint is None or event is None:
            account.store.remove("_delivery", delivery_id)
            _release_draft_invoice(account, delivery)
            return None
        if self._is_postponed(delivery):
            return None
        body = json.dumps(with_pending_webhooks(account, event), indent=2).encode()
        return self._attempt(delivery["event_type"], endpoint, body)

    def _is_postponed(self, delivery: Resource) -> bool:
        event_type = delivery["event_type"]
        if _use_fault(self._account, "hold", event_type):
            delivery["held"] = True
            return True
        if not delivery["delayed"]:
            delay = _use_fault(self._account, "delay", event_type)
            if delay:
                delivery.update(delayed=True, due_at=self._account.now + delay["seconds"])
                return True
        return False

    def _attempt(self, event_type: str, endpoint: Resource, body: bytes) -> _Attempt:
        account, url, secret = self._account, endpoint["url"], endpoint["secret"]
        drop = _use_fault(account, "drop", event_type)
        if drop:
            return _Attempt(url, [], 200 if drop["reported_as"] == "delivered" else 0)
        corruption = _use_fault(account, "corrupt", event_type)
        if corruption:
            return _Attempt(url, [corrupt(body, secret, corruption["how"])])
        duplicate = _use_fault(account, "duplicate", event_type)
        copies = 1 + (duplicate["times"] if duplicate else 0)
        is_own_time = account.setting("signed_at", "real") == "account"
        timestamp = account.now if is_own_time else None
        return _Attempt(url, [sign(body, secret, timestamp) for _ in range(copies)])

    def _post(self, url: str, post: SignedBody) -> int:
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Stripe/1.0"}
        if post.signature is not None:
            headers["Stripe-Signature"] = post.signature
        try:
            return self._pool.request("POST", url, body=post.body, headers=headers, redirect=False).status
        except urllib3.exceptions.HTTPError:
            return 0

    def _record(self, delivery_id: str, statuses: list[int]) -> None:
        account = self._account
        delivery = account.store.get("_delivery", delivery_id)
        if delivery is None:
            return
        delivery["attempts"] += 1
        delivery["response_status"] = statuses[0]
        if any(200 <= status < 300 for status in statuses):
            delivery["delivered_at"] = account.now
            _move(account, delivery, "_delivered")
            _release_draft_invoice(account, delivery)
            return
        delivery["due_at"] = account.now + _RETRY_SECONDS[min(delivery["attempts"], len(_RETRY_SECONDS)) - 1]
        if delivery["due_at"] > delivery["created"] + _THREE_DAYS:
            _move(account, delivery, "_given_up")


def _move(account: Account, delivery: Resource, kind: str) -> None:
    account.store.remove("_delivery", delivery["id"])
    account.add({**delivery, "object": kind})


def _release_draft_invoice(account: Account, delivery: Resource) -> None:
    """Finalize the draft an hour after this delivery, if it is its `invoice.created`."""
    if delivery["event_type"] != "invoice.created":
        return
    invoice = account.store.get("invoice", delivery["resource"])
    if invoice is not None and invoice["status"] == "draft":
        invoice["webhooks_delivered_at"] = account.now
