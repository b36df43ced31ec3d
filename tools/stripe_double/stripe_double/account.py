"""One Stripe account in test mode: its resources, its clock and its settings."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stripe_double.errors import InvalidRequest, ResourceMissing
from stripe_double.store import Resource, Store

API_VERSION = "2026-10-28.endive"


def publishable_key(secret_key: str) -> str:
    """Return the publishable key that belongs to the secret key."""
    return "pk_test_" + secret_key.removeprefix("sk_test_")


class Clock:
    """Unix time with an offset to the real one, kept across restarts; it can be frozen."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._frozen_at: int | None = None

    def now(self) -> int:
        """Return the current second."""
        if self._frozen_at is not None:
            return self._frozen_at
        row = self._store.get("_clock", "clock")
        return int(time.time() + (float(row["offset"]) if row else 0))

    def freeze_at(self, timestamp: int) -> None:
        """Freeze until `resume` or `move_to`."""
        self._frozen_at = timestamp

    def resume(self) -> None:
        """Resume with the offset from before the freeze."""
        self._frozen_at = None

    def move_to(self, timestamp: int) -> None:
        """Continue from the timestamp."""
        with self._store.transaction():
            row = self._store.get("_clock", "clock") or self._store.add({"object": "_clock", "id": "clock"})
            row["offset"] = timestamp - time.time() + 0.001
        self._frozen_at = None


@dataclass(frozen=True)
class RequestInfo:
    """The API request that causes the current changes; both None if the scheduler causes them."""

    id: str | None = None
    idempotency_key: str | None = None


@dataclass
class Account:
    """The state of the account, for every operation."""

    store: Store
    clock: Clock
    url: str = ""
    request: RequestInfo = field(default_factory=RequestInfo)
    wakeup: threading.Event = field(default_factory=threading.Event)  # set when work may be due

    @property
    def now(self) -> int:
        """The account's current second."""
        return self.clock.now()

    @contextmanager
    def transaction(self, request: RequestInfo | None = None) -> Iterator[None]:
        """Keep all changes of the block or none, with the request that causes them."""
        with self.store.transaction():
            self.request = request or RequestInfo()
            yield

    def add(self, resource: Resource) -> Resource:
        """Store a new resource."""
        return self.store.add(resource)

    def setting(self, name: str, default: str) -> str:
        """Return a setting of the account's dashboard."""
        settings = self.store.get("_settings", "settings") or {}
        return str(settings.get(name, default))

    def change_settings(self, **values: str) -> None:
        """Change settings of the account's dashboard."""
        settings = self.store.get("_settings", "settings")
        settings = settings or self.add({"object": "_settings", "id": "settings"})
        settings.update(values)


def open_account(directory: Path) -> Account:
    """Return the account stored in the folder, or a new one."""
    directory.mkdir(parents=True, exist_ok=True)
    store = Store(directory / "account.sqlite3")
    return Account(store=store, clock=Clock(store))


def find(account: Account, kind: str, identifier: str, noun: str | None = None) -> Resource:
    """Return the resource named by the path; 404 if it does not exist."""
    resource = account.store.get(kind, identifier)
    if resource is None:
        raise ResourceMissing(noun or kind.replace("_", " "), identifier)
    return resource


def find_param(account: Account, kind: str, identifier: str, param: str, noun: str | None = None) -> Resource:
    """Return the resource named by a parameter; 400 if it does not exist."""
    resource = account.store.get(kind, identifier)
    if resource is None or resource.get("deleted"):
        raise ResourceMissing(noun or kind.replace("_", " "), identifier, param=param, status=400)
    return resource


def find_customer_card(account: Account, identifier: str, customer: str, param: str) -> Resource:
    """Return a payment method that is attached to the customer."""
    method = find_param(account, "payment_method", identifier, param, noun="PaymentMethod")
    if method["customer"] != customer:
        raise InvalidRequest(
            f"The customer does not have a payment method with the ID {identifier}. The payment method must be "
            "attached to the customer.",
            code="resource_missing",
            param=param,
        )
    return method
