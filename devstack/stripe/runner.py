"""Doing what is due, in the order in which it is due."""

import os
import threading
import traceback

from devstack.stripe.agenda import WORK, Agenda, Due
from devstack.stripe.events.postman import Postman
from devstack.stripe.state.account import Account

_BEAT_SECONDS = 0.2


class Runner:
    """Runs the account's time: by itself as the real one passes, or up to a moment when told to."""

    def __init__(self, account: Account, postman: Postman) -> None:
        self._account = account
        self._agenda = Agenda(account)
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
        start = self._account.now
        while True:
            with self._account.unit():
                first = self._agenda.first()
                if first is None or first.moment > moment:
                    return
                self._account.clock.stand_at(max(first.moment, start))  # what is late happens now
                self._work(first)
            if first.kind == "_delivery":
                self._postman.send(first.id)

    def _work(self, due: Due) -> None:
        thing = self._account.store.get(due.kind, due.id)
        if thing is not None and due.kind in WORK:
            WORK[due.kind](self._account, thing)
