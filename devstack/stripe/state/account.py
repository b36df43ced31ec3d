"""The account: its things, its time, its settings, and whose request is being served."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from devstack.stripe.state.clock import Clock
from devstack.stripe.state.store import Store
from devstack.stripe.state.things import Thing, difference, new_id, public

API_VERSION = "2026-10-28.endive"
Teller = Callable[["Account", str, Thing, Thing | None], None]


@dataclass(frozen=True)
class Serving:
    """The request behind the present changes; both None when time alone is behind them."""

    request_id: str | None = None
    idempotency_key: str | None = None


@dataclass
class Account:
    """One Stripe account in test mode."""

    store: Store
    clock: Clock
    teller: Teller
    address: str = ""
    serving: Serving = field(default_factory=Serving)
    told: threading.Event = field(default_factory=threading.Event)

    @property
    def now(self) -> int:
        """The account's present second."""
        return self.clock.now()

    @contextmanager
    def unit(self, serving: Serving | None = None) -> Iterator[None]:
        """Keep all changes of the block or none, and name the request behind them."""
        with self.store.unit():
            self.serving = serving or Serving()
            yield

    def add(self, thing: Thing) -> Thing:
        """Keep a new thing."""
        return self.store.add(thing)

    def tell(self, type: str, thing: Thing, previous: Thing | None = None) -> None:
        """Record the event; its deliveries leave once the unit has ended well."""
        self.teller(self, type, thing, previous)
        self.told.set()

    @contextmanager
    def telling(self, type: str, thing: Thing) -> Iterator[None]:
        """Record the event if the block changed what the outside sees of the thing."""
        before = public(thing)
        yield
        previous = difference(before, public(thing))
        if previous:
            self.tell(type, thing, previous)

    def setting(self, name: str, default: str) -> str:
        """Return a setting of the account's dashboard."""
        kept = self.store.get("_settings", "settings") or {}
        return str(kept.get(name, default))

    def change_settings(self, **values: str) -> None:
        """Change settings of the account's dashboard."""
        kept = self.store.get("_settings", "settings")
        kept = kept or self.add({"object": "_settings", "id": "settings"})
        kept.update(values)

    def next_number(self, name: str) -> int:
        """Return 1, then 2, and so on, per name."""
        kept = self.store.get("_numbers", name) or self.add({"object": "_numbers", "id": name, "last": 0})
        kept["last"] += 1
        return int(kept["last"])


def open_account(directory: Path, teller: Teller) -> Account:
    """Return the account kept in the folder; a new one where there is none."""
    directory.mkdir(parents=True, exist_ok=True)
    store = Store(directory / "account.sqlite3")
    return Account(store=store, clock=Clock(store), teller=teller)


def request_id() -> str:
    """Return the id of one request."""
    return new_id("req", 14)
