"""Doing what is due, in the order in which it is due."""

import os
import threading
import traceback
from collections.abc import Callable, Iterator

from devstack.stripe.billing.collecting import collect
from devstack.stripe.billing.ending import expire
from devstack.stripe.billing.invoicing import finalize, finalizes_at
from devstack.stripe.billing.payments import default_intent
from devstack.stripe.billing.refunding import settle_refund, settles_at
from devstack.stripe.billing.renewing import turn, turns_at
from devstack.stripe.events.postman import Postman
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing

_EXPIRY = 23 * 3600
_BEAT_SECONDS = 0.2
_Work = Callable[[Account, Thing], None]


class Runner:
    """Runs the account's time: by itself as the real one passes, or up to a moment when told to."""

    def __init__(self, account: Account, postman: Postman) -> None:
        self._account = account
        self._postman = postman
        self._turn = threading.Lock()

    def start(self) -> None:
        """Run with the real time from now on, as long as the process lives."""
        threading.Thread(target=self._beat, name="runner", daemon=True).start()

    def advance_to(self, moment: int) -> None:
        """Do everything that is due up to the moment, deliveries included, and go on from there."""
        with self._turn:
            self._run(moment)
            self._account.clock.run_from(max(moment, self._account.now))

    def catch_up(self) -> None:
        """Do everything that is due now."""
        with self._turn:
            try:
                self._run(self._account.now)
            finally:
                self._account.clock.run()

    def _beat(self) -> None:
        try:
            while True:
                self._account.told.wait(_BEAT_SECONDS)
                self._account.told.clear()
                self.catch_up()
        except Exception:  # noqa: BLE001 (whatever it is, time stands still)
            traceback.print_exc()
            os._exit(1)  # a double without time would lie; better that it is missed

    def _run(self, moment: int) -> None:
        account = self._account
        while True:
            with account.unit():
                first = min(_due(account), key=lambda entry: entry[0], default=None)
                if first is None or first[0] > moment:
                    return
                account.clock.stand_at(first[0])
                delivery = self._work(first[1], first[2])
            if delivery is not None:
                self._postman.send(delivery)

    def _work(self, work: _Work | None, thing: Thing) -> str | None:
        if work is None:
            return str(thing["id"])
        work(self._account, self._account.store.get(thing["object"], thing["id"]) or thing)
        return None


def _due(account: Account) -> Iterator[tuple[int, _Work | None, Thing]]:
    for delivery in account.store.all("_delivery"):
        if not delivery["held"]:
            yield delivery["due_at"], None, delivery
    for subscription in account.store.all("subscription"):
        if subscription["status"] == "incomplete":
            yield subscription["created"] + _EXPIRY, _expire, subscription
        moment = turns_at(subscription)
        if moment is not None:
            yield moment, turn, subscription
    for invoice in account.store.all("invoice"):
        moment = (
            invoice["next_payment_attempt"] if invoice["status"] == "open" else finalizes_at(account, invoice)
        )
        if moment is not None:
            yield moment, _collect, invoice
    for refund in account.store.all("refund"):
        moment = settles_at(refund)
        if moment is not None:
            yield moment, settle_refund, refund


def _expire(account: Account, subscription: Thing) -> None:
    expire(account, subscription["id"])


def _collect(account: Account, invoice: Thing) -> None:
    if invoice["status"] == "draft":
        finalize(account, invoice)
    intent = default_intent(account, invoice)
    if intent is None or intent["status"] != "canceled":
        collect(account, invoice, off_session=True, scheduled=True)
