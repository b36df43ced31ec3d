"""Wallets that read their accounts beside the relay calls, and a count of all responses by status."""

import random
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count, cycle, islice
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import urllib3
from urllib3.poolmanager import pool_classes_by_scheme

from credit_relay_client import Call, RelayProblem, ServiceUnreachable
from devstack.wallet import Wallet

_VISITORS = 4
# More than the web processes have threads.
_AT_ONCE = 32
_CALL = Call("0x" + f"{4096:040x}", value=1)
_PAUSE_SECONDS = (0.2, 0.6)

# Number of responses by path and status; 0 for no response.
Responses: TypeAlias = Counter[tuple[str, int]]


@contextmanager
def counted(port: int, answers: Responses) -> Iterator[None]:
    """Count all responses that clients in this process get from this port during the block, retries included."""

    class Counting(urllib3.HTTPConnectionPool):
        def urlopen(self, method: str, url: str, *args: Any, **options: Any) -> Any:
            status = 0
            try:
                response = super().urlopen(method, url, *args, **options)
                status = response.status
                return response
            finally:
                if self.port == port:
                    answers[path_of(url), status] += 1

    kept = pool_classes_by_scheme["http"]
    pool_classes_by_scheme["http"] = Counting
    try:
        yield
    finally:
        pool_classes_by_scheme["http"] = kept


class Visits:
    """Sign-in, quota, status, dashboard and check-in in turn, by wallets that also make calls."""

    def __init__(self, wallets: Sequence[Wallet], recent_hash: Callable[[str], str | None]) -> None:
        """`recent_hash` returns the hash of a recent call of a profile, or None."""
        # The second wallet of each pair signs in repeatedly.
        self._wallets = [(wallet, replace(wallet)) for wallet in wallets]
        self._recent_hash = recent_hash
        self._numbers = count()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send these requests during the block."""
        stop = threading.Event()
        threads = [threading.Thread(target=self._visit, args=(stop,), daemon=True) for _ in range(_VISITORS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def rush(self) -> None:
        """
        Send requests that need every server, from more clients than the service has threads, and wait for all.

        Afterwards each thread has opened its connections, and pools have their maximum size.
        """
        wallets = islice(cycle(wallet for wallet, _ in self._wallets), _AT_ONCE)
        with ThreadPoolExecutor(_AT_ONCE) as clients:
            for wallet in wallets:
                ask_node = partial(wallet.relay.prepare, wallet.profile_address, _CALL, quote=False)
                clients.submit(_in_turn, [ask_node, wallet.setup_intent, *self._requests(wallet)])

    def _visit(self, stop: threading.Event) -> None:
        while not stop.is_set():
            number = next(self._numbers)
            wallet, signing_in = self._wallets[number % len(self._wallets)]
            requests: list[Callable[[], object]] = [partial(_sign_in, signing_in), *self._requests(wallet)]
            for request in requests:
                # Error responses are counted like others.
                with suppress(RelayProblem, ServiceUnreachable):
                    request()
                stop.wait(random.uniform(*_PAUSE_SECONDS))  # noqa: S311 - not a secret

    def _requests(self, wallet: Wallet) -> Iterator[Callable[[], object]]:
        yield wallet.quota
        transaction_hash = self._recent_hash(wallet.profile_address)
        if transaction_hash:
            yield partial(wallet.transaction_status, transaction_hash)
        yield wallet.dashboard
        yield wallet.check_in_drops
        yield partial(wallet.execute_check_in, secrets.token_hex(8))


def _in_turn(requests: Sequence[Callable[[], object]]) -> None:
    for request in requests:
        with suppress(RelayProblem, ServiceUnreachable):
            request()


def _sign_in(wallet: Wallet) -> None:
    wallet.sign_in()
    wallet.relay.session(wallet.profile_address).close()


def path_of(url: str) -> str:
    """Return the first three segments of a path; later ones may be hashes or secrets."""
    return "/".join(urlsplit(url).path.split("/")[:4])
