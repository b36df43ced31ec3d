"""
A stand-in for the service: it keeps the wire contract with as little as it takes, and can lie.

It holds every signature of the wallet against the chain, so the wallet is checked
by code that is neither the wallet's nor the service's.
"""

import json
import math
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from eth_account import Account
from eth_account.messages import encode_defunct
from eth_utils.crypto import keccak

from devstack.chain_record import ask, read_record
from devstack.environment import CREDIT_WEI
from devstack.services import Services
from devstack.world import Call, Profile
from devstack.world.abi import calldata
from devstack.world.deployer import TransactionReverted
from tests.devstack.till import Till, TurnedAway

_RELAY = "executeRelayCall(bytes,uint256,uint256,bytes)"
_REFUSAL = {"type": "/problems/x", "title": "No", "code": "x", "detail": "No.", "requestId": "1"}


@dataclass
class StandIn:
    """One user with one profile and a balance of credits."""

    services: Services
    profile: Profile
    extra_credits: int = 0
    same_hash: bool = True
    balance: int = 50_000
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    message: str = field(default_factory=lambda: f"Sign in {secrets.token_hex(8)}")
    till: Till = field(init=False)

    def __post_init__(self) -> None:
        self.till = Till(self.services, self.profile.profile_address)

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a request, or None to refuse it."""
        routes: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
            "/api/auth/nonce": self._nonce,
            "/api/auth/verify": self._verify,
            "/api/relay/quota": self._quota,
            "/api/relay/execute": self._execute,
            "/api/relay/transactionStatus": lambda found: self.records[found["transactionHash"]],
            "/api/payments/createCustomer": self.till.customer,
            "/api/payments/getSetupIntent": self.till.setup_intent,
            "/api/payments/upsertSubscription": self.till.upsert,
            "/api/payments/cancelSubscription": self.till.cancel,
        }
        return routes[path](body)

    def _nonce(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"nonce": "n", "message": self.message, "expiresAt": "later"}

    def _verify(self, body: dict[str, Any]) -> dict[str, Any] | None:
        signer = Account.recover_message(encode_defunct(text=self.message), signature=body["signature"])
        if signer != self.profile.controller.address:
            return None
        return {"access": "a", "refresh": "r", "expiresIn": 600, "address": self.profile.profile_address}

    def _quota(self, body: dict[str, Any]) -> dict[str, Any] | None:
        packed = bytes.fromhex(body["address"][2:]) + body["timestamp"].to_bytes(32, "big")
        message = encode_defunct(primitive=keccak(packed))
        if Account.recover_message(message, signature=body["signature"]) != self.profile.controller.address:
            return None
        total, reset = self.till.running()
        quota = self.balance + self.till.paid_out()
        return {"quota": quota, "unit": "credits", "totalQuota": total, "resetDate": reset}

    def _execute(self, body: dict[str, Any]) -> dict[str, Any] | None:
        call, text = body["transaction"], json.dumps(body)
        if text in self.known and self.same_hash:
            return {"transactionHash": self.known[text]}
        payload, signature = (bytes.fromhex(call[name][2:]) for name in ("abi", "signature"))
        data = calldata(_RELAY, signature, call["nonce"], 0, payload)
        try:
            receipt = self.services.world.deployer.send([Call(body["keyManagerAddress"], data, gas=600_000)])[
                0
            ]
        except TransactionReverted:
            return None
        self.known[text] = str(receipt["transactionHash"])
        self._settle(self.known[text], body["keyManagerAddress"])
        return {"transactionHash": self.known[text]}

    def _settle(self, transaction_hash: str, key_manager: str) -> None:
        cost = read_record(self.services.rpc, transaction_hash).cost_wei
        used, before = math.ceil(cost / CREDIT_WEI) + self.extra_credits, self.balance
        self.balance -= used
        self.records[transaction_hash] = {
            "status": "Success",
            "transactionSenderAddress": self.profile.profile_address,
            "creditsUsed": used,
            "creditsBefore": before,
            "creditsAfter": self.balance,
        }
        assert ask(self.services.rpc, "address", key_manager, "target()")


@contextmanager
def serving(stand_in: StandIn) -> Iterator[str]:
    """Yield the base URL of the stand-in."""

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        body = json.loads(environ["wsgi.input"].read(size) or "{}")
        refusal = TurnedAway(403, "x")
        try:
            answer = stand_in.answer(environ["PATH_INFO"], body)
        except TurnedAway as turned:
            answer, refusal = None, turned
        kind = "application/json" if answer is not None else "application/problem+json"
        start_response(f"{200 if answer else refusal.status} As it is", [("Content-Type", kind)])
        return [json.dumps(answer or {**_REFUSAL, "status": refusal.status, "code": refusal.code}).encode()]

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
