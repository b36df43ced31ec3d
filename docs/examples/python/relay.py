#!/usr/bin/env python3
# ruff: noqa: T201
"""
A complete small client: sign a profile in, relay one call, and wait until it is final.

    pip install eth-account urllib3
    python relay.py stack.json

`stack.json` is what `make run` writes to var/stack.json. For another service, write a
file with the same three members: base_url, rpc_url, and profiles, a list whose first
item has profile_address and controller_private_key.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import urllib3
from eth_abi.abi import decode, encode
from eth_account import Account
from eth_account.messages import encode_defunct
from eth_utils.crypto import keccak

LSP25_VERSION = 25
EXECUTE = keccak(text="execute(uint256,address,uint256,bytes)")[:4]
CALL = 0


def lsp25_hash(
    *, chain_id: int, key_manager: str, nonce: int, payload: bytes, validity: int = 0, value: int = 0
) -> bytes:
    """Return the 32 bytes that a controller signs. A service that relays sends no value, so it is 0."""
    words = b"".join(n.to_bytes(32, "big") for n in (LSP25_VERSION, chain_id, nonce, validity, value))
    return keccak(b"\x19\x00" + raw(key_manager) + words + payload)


def sign_relay_call(private_key: str, digest: bytes) -> bytes:
    """Sign the hash itself. `Account.sign_message` over it would add a prefix, and no key manager accepts that."""
    return bytes(Account.unsafe_sign_hash(digest, private_key).signature)


def personal_sign(private_key: str, message: bytes) -> bytes:
    """Sign a message as wallets do, for sign-in and quota."""
    return bytes(Account.sign_message(encode_defunct(primitive=message), private_key).signature)


def quota_message(profile: str, timestamp: int) -> bytes:
    """Return the 32 bytes that `personal_sign` takes to ask for the quota."""
    return keccak(raw(profile) + timestamp.to_bytes(32, "big"))


def raw(address: str) -> bytes:
    """Return the 20 bytes of an address."""
    return bytes.fromhex(address[2:])


class Busy(RuntimeError):
    """The service is busy: repeat the request after `seconds` (429 and 503)."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


def with_retries(request: Callable[[], dict[str, Any]], *, attempts: int = 5) -> dict[str, Any]:
    """Return what `request` returns; while the service is busy, repeat it."""
    for _ in range(attempts - 1):
        try:
            return request()
        except Busy as busy:
            time.sleep(busy.seconds)
    return request()


class Client:
    """One controller of one profile."""

    def __init__(self, stack: dict[str, Any]) -> None:
        owner = stack["profiles"][0]
        self.base_url, self.rpc_url = stack["base_url"], stack["rpc_url"]
        self.profile, self.private_key = owner["profile_address"], owner["controller_private_key"]
        self.controller = Account.from_key(self.private_key).address
        self.http = urllib3.PoolManager(retries=False, timeout=30)
        self.headers: dict[str, str] = {}

    def sign_in(self) -> None:
        """Sign the service's message and keep the access token."""

        def request() -> dict[str, Any]:
            # Each time with a new nonce: one is good for one attempt, also where the answer is 503.
            challenge = self.post("/api/auth/nonce", {"address": self.profile})
            signature = personal_sign(self.private_key, challenge["message"].encode())
            return self.post(
                "/api/auth/verify", {"nonce": challenge["nonce"], "signature": "0x" + signature.hex()}
            )

        self.headers = {"Authorization": f"Bearer {with_retries(request)['access']}"}

    def quota(self) -> int:
        """Return the credits that can be spent now."""

        def request() -> dict[str, Any]:
            # Each time with the time of now: it is good for 5 seconds.
            now = int(time.time())
            signature = personal_sign(self.private_key, quota_message(self.profile, now))
            body = {"address": self.profile, "timestamp": now, "signature": "0x" + signature.hex()}
            return self.post("/api/relay/quota", body)

        return int(with_retries(request)["quota"])

    def relay(self, payload: bytes, *, channel: int = 0) -> str:
        """Sign the payload for the key manager's next nonce, send it, and return the transaction's hash."""
        key_manager = self.read("owner()", [], [], self.profile, "address")
        nonce = self.read(
            "getNonce(address,uint128)",
            ["address", "uint128"],
            [self.controller, channel],
            key_manager,
            "uint256",
        )
        digest = lsp25_hash(
            chain_id=int(self.rpc("eth_chainId"), 16), key_manager=key_manager, nonce=nonce, payload=payload
        )
        transaction = {
            "abi": "0x" + payload.hex(),
            "signature": "0x" + sign_relay_call(self.private_key, digest).hex(),
            "nonce": str(nonce),  # text: above 2^53 a JSON number loses digits in many clients
        }
        body = {"keyManagerAddress": key_manager, "transaction": transaction}
        # The very same again: the same relay call twice is one transaction.
        return str(with_retries(lambda: self.post("/api/relay/execute", body))["transactionHash"])

    def wait(self, transaction_hash: str, *, seconds: int = 120) -> dict[str, Any]:
        """Return the status record once it is final."""
        body = {"transactionHash": transaction_hash}
        for _ in range(seconds):
            status = with_retries(lambda: self.post("/api/relay/transactionStatus", body))
            if status["status"] not in {"Pending", "Submitted"}:
                return status
            time.sleep(1)
        raise TimeoutError(f"{transaction_hash} is still {status['status']}")

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer; raise `Busy` if the request may succeed later."""
        response = self.http.request("POST", self.base_url + path, json=body, headers=self.headers)
        answer: dict[str, Any] = response.json()
        if response.status == 200:
            return answer
        message = f"{answer['code']}: {answer['detail']}"
        if response.status in {429, 503}:
            raise Busy(message, int(response.headers.get("Retry-After", "1")))
        raise RuntimeError(message)

    def read(self, function: str, types: list[str], values: list[Any], contract: str, answer: str) -> Any:
        """Return the answer of a contract's view function."""
        data = "0x" + (keccak(text=function)[:4] + encode(types, values)).hex()
        result = self.rpc("eth_call", {"to": contract, "data": data}, "latest")
        return decode([answer], bytes.fromhex(result[2:]))[0]

    def rpc(self, method: str, *params: Any) -> Any:
        """Return the result of one JSON-RPC call to a chain node."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.http.request("POST", self.rpc_url, json=body).json()["result"]


def main(stack_file: str) -> None:
    """Relay a transfer of 1 wei from the profile to its controller."""
    client = Client(json.loads(Path(stack_file).read_text()))
    client.sign_in()
    print(f"signed in as {client.profile}, {client.quota()} credits")
    arguments = [CALL, client.controller, 1, b""]
    payload = EXECUTE + encode(["uint256", "address", "uint256", "bytes"], arguments)
    transaction_hash = client.relay(payload)
    print(f"accepted as {transaction_hash}")
    end = client.wait(transaction_hash)
    print(f"{end['status']}, {end['creditsUsed']} credits used, {end['creditsAfter']} left")


if __name__ == "__main__":
    main(sys.argv[1])
