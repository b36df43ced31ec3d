"""Prepared requests, as bytes of HTTP/1.1: signed relay calls and authenticated reads."""

import itertools
import json
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from eth_utils.crypto import keccak

from credit_relay_client import RelayCall
from devstack.wallet import Wallet
from devstack.world.abi import calldata
from devstack.world.keys import sign_digest
from lab.bench.stack import Stack

_TOKEN_SECONDS = 400  # an access token is valid for ten minutes
_FIRST_TARGET = 4096
_NEW_WALLETS = 4


@dataclass
class Wallets:
    """The signed-in wallets of a stack. Tokens are renewed between measurements; no nonce is used twice."""

    stack: Stack
    targets: int
    """How many target addresses each profile uses in turn; 0 means a new one for every call."""
    _wallets: list[Wallet] = field(default_factory=list)
    _signed_in_at: float = float("-inf")
    _channels: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def signed_in(self) -> list[Wallet]:
        """Return all wallets, with tokens that are valid for a whole round."""
        if time.monotonic() - self._signed_in_at > _TOKEN_SECONDS:
            self._wallets = [
                Wallet.of(profile, self.stack.base_url, self.stack.rpc)
                for profile in self.stack.described["profiles"]
            ]
            with ThreadPoolExecutor(4) as threads:
                list(threads.map(Wallet.sign_in, self._wallets))
            self._signed_in_at = time.monotonic()
        return self._wallets

    def callers(self) -> list[Wallet]:
        """Return the wallets that make calls."""
        return self.signed_in()[_NEW_WALLETS:]

    def new_wallet(self, number: int) -> Wallet:
        """Return a wallet that never makes calls."""
        return self.signed_in()[:_NEW_WALLETS][number]

    def many_profiles(self, count: int, *headers: str) -> list[list[str]]:
        """Return one lane of calls: profiles take turns, and each call has its own channel, and these headers."""
        wallets = self.callers()
        return [
            [self._call(wallets[n % len(wallets)], next(self._channels), 0, *headers) for n in range(count)]
        ]

    def channels_of_one(self, count: int, *, channels: int) -> list[list[str]]:
        """Return one lane per channel of one profile; the calls of a lane must be sent in order."""
        wallet = self.callers()[0]
        each = -(-count // channels)
        names = [next(self._channels) for _ in range(channels)]
        return [[self._call(wallet, channel, nonce) for nonce in range(each)] for channel in names]

    def creations(self, count: int, keys: Sequence[str]) -> list[str]:
        """Return requests for profiles of new controllers, each by the next API key."""
        return [
            post(
                self.stack.base_url,
                "/api/universal-profile",
                keys[number % len(keys)],
                {"lsp6ControllerAddress": ["0x" + secrets.token_hex(20)], "lsp3Profile": "0x"},
            )
            for number in range(count)
        ]

    def quotas(self) -> list[list[str]]:
        """Return one lane of quota requests of all wallets; their signatures expire after a few seconds."""
        now = int(time.time()) + 2
        return [[self._quota(wallet, now) for wallet in self.signed_in()]]

    def statuses(self, wallet: Wallet, hashes: Sequence[str]) -> list[list[str]]:
        """Return one lane of status requests of a wallet's transactions."""
        token, path = wallet.token, "/api/relay/transactionStatus"
        return [[post(self.stack.base_url, path, token, {"transactionHash": name}) for name in hashes]]

    def waits(self, calls: Sequence[tuple[str, str]], seconds: int) -> list[list[str]]:
        """Return one lane per call, given as hash and profile: a long-polling request for its next status."""
        tokens = {wallet.profile_address: wallet.token for wallet in self.signed_in()}
        path = "/api/relay/transactions"
        return [
            [get(self.stack.base_url, f"{path}/{name}?wait={seconds}", tokens[profile])]
            for name, profile in calls
        ]

    def dashboard(self, wallet: Wallet) -> list[list[str]]:
        """Return one lane with one request of a wallet's dashboard."""
        return [[get(self.stack.base_url, "/api/user/dashboardInfo", wallet.token)]]

    def check_ins(self) -> list[list[str]]:
        """Return one lane with one check-in per wallet, the daily maximum."""
        path = "/api/user/executeCheckIn"
        return [
            [
                get(
                    self.stack.base_url,
                    path,
                    wallet.token,
                    f"idempotency-key: bench-{secrets.token_hex(8)}",
                )
                for wallet in self.signed_in()
            ]
        ]

    def _quota(self, wallet: Wallet, now: int) -> str:
        inner = keccak(bytes.fromhex(wallet.profile_address[2:]) + now.to_bytes(32, "big"))
        digest = keccak(b"\x19Ethereum Signed Message:\n32" + inner)
        signature = "0x" + sign_digest(wallet.controller_key, digest).hex()
        body = {"address": wallet.profile_address, "timestamp": now, "signature": signature}
        return post(self.stack.base_url, "/api/relay/quota", wallet.token, body)

    def _call(self, wallet: Wallet, channel: int, nonce: int, *headers: str) -> str:
        number = next(self._numbers)
        target = "0x" + f"{_FIRST_TARGET + (number % self.targets if self.targets else number):040x}"
        payload = calldata("execute(uint256,address,uint256,bytes)", 0, target, 1, b"")
        body = signed_call(
            wallet, payload, chain_id=self.stack.described["chain_id"], nonce=(channel << 128) + nonce
        )
        return post(self.stack.base_url, "/api/relay/execute", wallet.token, body, *headers)


def signed_call(
    wallet: Wallet, payload: bytes, *, chain_id: int, nonce: int, validity: int = 0
) -> dict[str, Any]:
    """Return what `Wallet.signed` returns, without asking the node and twenty times as fast."""
    call = RelayCall(chain_id, wallet.key_manager_address, nonce, payload, validity)
    signature = "0x" + sign_digest(wallet.controller_key, call.hash).hex()
    number = nonce if nonce < 2**53 else str(nonce)
    transaction = {"abi": "0x" + payload.hex(), "signature": signature, "nonce": number}
    if validity:
        transaction["validityTimestamps"] = hex(validity)
    return {"keyManagerAddress": wallet.key_manager_address, "transaction": transaction}


def post(base_url: str, path: str, token: str | None, body: dict[str, Any], *headers: str) -> str:
    """Return a POST with a JSON body."""
    text = json.dumps(body)
    lines = ["content-type: application/json", f"content-length: {len(text)}", *headers]
    return _request("POST", base_url, path, token, lines) + text


def get(base_url: str, path: str, token: str | None, *headers: str) -> str:
    """Return a GET."""
    return _request("GET", base_url, path, token, headers)


def _request(method: str, base_url: str, path: str, token: str | None, headers: Sequence[str]) -> str:
    lines = [f"{method} {path} HTTP/1.1", f"host: {urlsplit(base_url).netloc}", *headers]
    lines += [f"authorization: Bearer {token}"] if token else []
    return "\r\n".join([*lines, "", ""])
