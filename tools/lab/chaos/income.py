"""
Earnings and subscriptions beside the relay calls: postbacks of ad networks, and periods paid by card.

A network retries a postback until it gets 200, and often sends a duplicate. Subscribers subscribe, cancel at once and
subscribe again; the expected payouts follow from the invoices that the payment provider has collected.
"""

import itertools
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

import urllib3

from credit_relay_client import RelayProblem, ServiceUnreachable
from devstack.ad_networks.signing import Reward
from devstack.journey.earnings import Network
from devstack.stripe_account import StripeAccount
from devstack.wallet import Wallet
from lab.chaos.verifier import PaidInvoice

_NETWORKS = ("adgem", "ayet-studios", "bitlabs", "tapjoy")
_POSTBACK_PAUSE, _SUBSCRIBER_PAUSE = 0.4, 0.5
_SENT_AGAIN = 0.3
_REPEAT_SECONDS, _GIVE_UP_SECONDS = 0.5, 60.0
# Stripe's third retry of a webhook event, which the double repeats, comes after five minutes.
_PAID_AFTER_SECONDS = 400
_CARD = "pm_card_visa"
# Statuses with which the service returns a duplicate.
_DONE = {404, 409}


class Income:
    """Wallets that earn and subscribe, and the credits promised to them during the last run."""

    def __init__(
        self, wallets: Sequence[Wallet], networks: dict[str, Network], provider: StripeAccount
    ) -> None:
        self._networks = {slug: networks[slug] for slug in _NETWORKS}
        self._provider = provider
        self._subscribers = itertools.cycle(wallets)
        self._stop = threading.Event()
        self._gives_up_at = float("inf")
        self._references = [self._references_of(wallet) for wallet in wallets]
        self.postbacks: list[str] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Earn and subscribe during the block; at its end wait up to a minute for responses."""
        self.postbacks = []
        self._stop.clear()
        self._gives_up_at = float("inf")
        threads = [threading.Thread(target=work, daemon=True) for work in (self._earn, self._subscribe)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._gives_up_at = time.monotonic() + _GIVE_UP_SECONDS
            self._stop.set()
            for thread in threads:
                thread.join()

    def paid_invoices(self) -> list[PaidInvoice]:
        """Return all invoices that the provider has collected so far."""
        return [
            PaidInvoice(invoice["id"], invoice["amount_paid"])
            for invoice in self._provider.paid_invoices()
            if invoice["amount_paid"]
        ]

    def until_paid_out(self, paid_out: Callable[[Sequence[PaidInvoice]], int]) -> bool:
        """Wait until `paid_out` counts every invoice; return False on timeout."""
        deadline = time.monotonic() + _PAID_AFTER_SECONDS
        while time.monotonic() < deadline:
            invoices = self.paid_invoices()
            if paid_out(invoices) == len(invoices):
                return True
            time.sleep(_REPEAT_SECONDS)
        return False

    def _earn(self) -> None:
        for number in itertools.count():
            if self._stop.wait(_POSTBACK_PAUSE):
                return
            slug = _NETWORKS[number % len(_NETWORKS)]
            reward = Reward(
                external_id=secrets.token_hex(12),
                user=random.choice(self._references)[slug],  # noqa: S311 - not a secret
                amount=str(1 + number % 50),
                at=datetime.now(UTC),
            )
            if self._until_served(partial(self._send, slug, reward)):
                self.postbacks.append(reward.external_id)
                if random.random() < _SENT_AGAIN:  # noqa: S311
                    self._until_served(partial(self._send, slug, reward))

    def _send(self, slug: str, reward: Reward) -> bool:
        network = self._networks[slug]
        return network.send(network.signed(reward)).status == 200

    def _subscribe(self) -> None:
        for wallet in self._subscribers:
            if self._stop.wait(_SUBSCRIBER_PAUSE):
                return
            amount = random.randrange(500, 5_000)  # noqa: S311
            if self._until_served(partial(self._pays, wallet, amount)):
                self._until_served(partial(_cancels, wallet))

    def _pays(self, wallet: Wallet, amount: int) -> bool:
        wallet.create_customer()
        try:
            wallet.upsert_subscription(amount)
        except RelayProblem as refusal:
            if refusal.code != "payment-method-required":
                raise
            self._provider.capture_card(wallet.setup_intent(), _CARD)
            wallet.upsert_subscription(amount)
        return True

    def _until_served(self, ask: Callable[[], bool]) -> bool:
        """Retry until there is a response or a timeout; return whether it was positive."""
        while time.monotonic() < self._gives_up_at:
            try:
                if ask():
                    return True
            except (urllib3.exceptions.HTTPError, ServiceUnreachable, RelayProblem):
                pass
            time.sleep(_REPEAT_SECONDS)
        return False

    @staticmethod
    def _references_of(wallet: Wallet) -> dict[str, str]:
        return {row["network"]: row["userReference"] for row in wallet.ad_networks()}


def _cancels(wallet: Wallet) -> bool:
    try:
        wallet.cancel_subscription(immediately=True)
    except RelayProblem as refusal:
        if refusal.status not in _DONE:
            raise
    return True
