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
from devstack.services.stack import Services
from devstack.world.abi import calldata
from devstack.world.deployer import Call, TransactionReverted
from devstack.world.profiles import Profile
from tests.devstack.booth import Booth
from tests.devstack.till import Till, TurnedAway

_RELAY = "executeRelayCall(bytes,uint256,uint256,bytes)"
_REFUSAL = {
    "type": "/problems/x",
    "title": "No",
    "code": "x",
    "detail": "No.",
    "requestId": "1",
    "nextCheckInAt": "tomorrow",
}


@dataclass
class StandIn:
    """One user with one profile and 50,000 credits to begin with."""

    services: Services
    profile: Profile
    extra_credits: int = 0
    same_hash: bool = True
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    message: str = field(default_factory=lambda: f"Sign in {secrets.token_hex(8)}")
    till: Till = field(init=False)
    booth: Booth = field(init=False)
    paid_out: int = 0

    def __post_init__(self) -> None:
        self.till = Till(self.services, self.profile.profile_address)
        self.booth = Booth(self.profile.profile_address)
        self.booth.post("STAFF_ADJUSTMENT", 50_000)

    def answer(self, path: str, body: dict[str, Any], key: str = "") -> Any:
        """Return the answer to a request, or None to refuse it; `key` is its Idempotency-Key."""
        self._notice_payouts()
        routes: dict[str, Callable[[dict[str, Any]], Any]] = {
            "/api/auth/nonce": self._nonce,
            "/api/auth/verify": self._verify,
            "/api/relay/quota": self._quota,
            "/api/relay/execute": self._execute,
            "/api/relay/transactionStatus": lambda found: self.records[found["transactionHash"]],
            "/api/payments/createCustomer": self.till.customer,
            "/api/payments/getSetupIntent": self.till.setup_intent,
            "/api/payments/upsertSubscription": self.till.upsert,
            "/api/payments/cancelSubscription": self.till.cancel,
            "/api/user/adNetworks": self.booth.networks,
            "/api/user/checkInDrops": self.booth.drops,
            "/api/user/executeCheckIn": lambda _: self.booth.check_in(key),
            "/api/user/checkInFairness": self.booth.fairness,
            "/api/user/dashboardInfo": self.booth.dashboard,
        }
        return routes[path](body)

    def _notice_payouts(self) -> None:
        paid = self.till.paid_out()
        if paid > self.paid_out:
            self.booth.post("SUBSCRIBED_PAYOUT", paid - self.paid_out)
            self.booth.experience += paid - self.paid_out
            self.paid_out = paid

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
        return {"quota": self.booth.credits, "unit": "credits", "totalQuota": total, "resetDate": reset}

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
        used = math.ceil(cost / CREDIT_WEI) + self.extra_credits
        moved = self.booth.charge(transaction_hash, used)
        self.records[transaction_hash] = {
            "status": "Success",
            "transactionSenderAddress": self.profile.profile_address,
            "creditsUsed": used,
            "creditsBefore": moved["credits_before"],
            "creditsAfter": moved["credits_after"],
        }
        assert ask(self.services.rpc, "address", key_manager, "target()")


@contextmanager
def serving(stand_in: StandIn) -> Iterator[str]:
    """Yield the base URL of the stand-in."""

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        path = environ["PATH_INFO"]
        if path.startswith("/api/postbacks/"):
            url = f"http://{environ['HTTP_HOST']}{path}"
            headers = {"x-ayetstudios-security-hash": environ.get("HTTP_X_AYETSTUDIOS_SECURITY_HASH", "")}
            status, text = stand_in.booth.hear(url, environ["QUERY_STRING"], headers)
            start_response(f"{status} As it is", [("Content-Type", "text/plain")])
            return [text.encode()]
        size = int(environ.get("CONTENT_LENGTH") or 0)
        body = json.loads(environ["wsgi.input"].read(size) or "{}")
        refusal = TurnedAway(403, "x")
        try:
            answer = stand_in.answer(path, body, environ.get("HTTP_IDEMPOTENCY_KEY", ""))
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
