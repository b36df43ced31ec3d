"""
Concurrent relay calls of many profiles, with the retries of a wallet.

A response is final when it is a hash or a 4xx error. After a closed connection or a 5xx the wallet cannot know whether
the call was accepted, so it sends the same body again until the response is final.
"""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import urllib3

from devstack.rpc import Rpc
from devstack.services.anvil import CHAIN_ID
from devstack.wallet import Wallet
from devstack.world.abi import calldata
from lab.bench.calls import signed_call
from lab.chaos.verifier import Acknowledged

_CLIENTS = 8
_PAUSE_SECONDS = (0.3, 0.9)
_ANSWER_SECONDS, _REPEAT_SECONDS, _GIVE_UP_SECONDS = 10.0, 0.3, 60.0
_FOLLOWED, _FOLLOWERS = 0.2, 2


@dataclass
class Call:
    """A relay call, and the results of its submission."""

    wallet: Wallet
    nonce: int
    payload: bytes
    body: bytes
    transaction_hash: str | None = None
    refusal: str = ""
    answers: set[str] = field(default_factory=set)
    # First submission (monotonic clock), and the seconds of the request that returned the hash.
    began_at: float = 0.0
    answered_at: float = 0.0
    seconds: float = 0.0

    @property
    def is_answered(self) -> bool:
        """Whether there is a hash or an error."""
        return bool(self.transaction_hash or self.refusal)

    def as_acknowledged(self) -> Acknowledged:
        """Return the call for the verifier."""
        return Acknowledged(self.wallet.key_manager_address, self.nonce, self.payload, self.transaction_hash)


class Traffic:
    """The wallets of a stack, and the calls of the last run."""

    def __init__(
        self,
        base_url: str,
        rpc: Rpc,
        profiles: Sequence[dict[str, Any]],
        *,
        clients: int = _CLIENTS,
        calls_url: str = "",
    ) -> None:
        """Wallets sign in at `base_url`, and submit calls there or at `calls_url`."""
        self._calls_url, self._clients = calls_url or base_url, clients
        self.wallets = [Wallet.of(profile, base_url, rpc) for profile in profiles]
        self._numbers = count(1)
        self._stop = threading.Event()
        self._gives_up_at = float("inf")
        self._validity_seconds: int | None = None
        self.calls: list[Call] = []
        # Responses by status.
        self.statuses: Counter[int] = Counter()
        # Those that are no final response, by code.
        self.outages: Counter[str] = Counter()

    def sign_in(self) -> None:
        """Sign every wallet in; the stack's tokens are valid for a day."""
        for wallet in self.wallets:
            wallet.sign_in()

    @contextmanager
    def running(
        self, *, validity_seconds: int | None = None, patience: float = _GIVE_UP_SECONDS
    ) -> Iterator[None]:
        """Make calls during the block; at its end wait for their responses, up to this many seconds."""
        self.calls = []
        self._validity_seconds = validity_seconds
        self._stop.clear()
        self._gives_up_at = float("inf")
        threads = [threading.Thread(target=self._client, daemon=True) for _ in range(self._clients)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._gives_up_at = time.monotonic() + patience
            self._stop.set()
            for thread in threads:
                thread.join()

    @property
    def unanswered(self) -> list[Call]:
        """Calls without a final response."""
        return [call for call in list(self.calls) if not call.is_answered]

    def repeat(self, calls: Sequence[Call]) -> None:
        """Submit accepted calls again; keep the responses."""
        pool = _pool()
        for call in calls:
            self._send(pool, call)

    def _client(self) -> None:
        pool = _pool()
        while not self._stop.is_set():
            for call in self._next_calls():
                self.calls.append(call)
                self._hand_in(pool, call)
                if not call.transaction_hash:
                    break
            self._stop.wait(random.uniform(*_PAUSE_SECONDS))  # noqa: S311 - not a secret

    def _next_calls(self) -> list[Call]:
        """Return a call on a new channel, sometimes followed by others on that channel."""
        number = next(self._numbers)
        wallet = self.wallets[number % len(self.wallets)]
        together = 1 + (_FOLLOWERS if random.random() < _FOLLOWED else 0)  # noqa: S311
        return [self._call(wallet, (number << 128) + place) for place in range(together)]

    def _call(self, wallet: Wallet, nonce: int) -> Call:
        target = f"0x{4096 + nonce % 7:040x}"
        payload = calldata("execute(uint256,address,uint256,bytes)", 0, target, 1, b"")
        validity = int(time.time()) + self._validity_seconds if self._validity_seconds else 0
        body = signed_call(wallet, payload, chain_id=CHAIN_ID, nonce=nonce, validity=validity)
        return Call(wallet, nonce, payload, json.dumps(body).encode())

    def _hand_in(self, pool: urllib3.PoolManager, call: Call) -> None:
        call.began_at = time.monotonic()
        while not call.is_answered and time.monotonic() < self._gives_up_at:
            if not self._send(pool, call):
                time.sleep(_REPEAT_SECONDS)

    def _send(self, pool: urllib3.PoolManager, call: Call) -> bool:
        """Send the call once; return whether the response is final."""
        began = time.monotonic()
        headers = {
            "content-type": "application/json",
            "authorization": f"Bearer {call.wallet.token}",
        }
        try:
            response = pool.request(
                "POST", f"{self._calls_url}/api/relay/execute", body=call.body, headers=headers
            )
            result = response.json()
        except (urllib3.exceptions.HTTPError, ValueError):
            return False
        self.statuses[response.status] += 1
        if response.status == 200:
            if call.transaction_hash is None:
                call.answered_at = time.monotonic()
                call.seconds = call.answered_at - began
            call.transaction_hash = call.transaction_hash or result["transactionHash"]
            call.answers.add(result["transactionHash"])
        elif response.status < 500:
            call.refusal = f"{response.status} {result.get('code')}"
        else:
            self.outages[str(result.get("code"))] += 1
        return call.is_answered


def _pool() -> urllib3.PoolManager:
    return urllib3.PoolManager(retries=False, timeout=_ANSWER_SECONDS)
