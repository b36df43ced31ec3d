"""
A small wallet: one controller key of one profile, speaking to a gateway.

It shares no code with the service, so that what both agree on is the protocol.
"""

import time
from dataclasses import dataclass
from typing import Any

from eth_abi.abi import encode
from eth_account import Account
from eth_account.messages import encode_defunct, encode_intended_validator
from eth_utils.crypto import keccak

from devstack.gateway_api import GatewayApi
from devstack.rpc import Rpc

_LSP25_VERSION = 25


@dataclass
class Wallet:
    """A profile and the controller that signs for it."""

    profile_address: str
    key_manager_address: str
    controller_key: str
    api: GatewayApi
    rpc: Rpc

    @property
    def controller_address(self) -> str:
        """The address that the profile gave permissions to."""
        return str(Account.from_key(self.controller_key).address)

    def sign_in(self) -> dict[str, Any]:
        """Sign the service's challenge and keep the access token; return the whole answer."""
        challenge = self.api.post("/api/auth/nonce", {"address": self.profile_address})
        signature = self._personal_sign(challenge["message"].encode())
        answer = self.api.post("/api/auth/verify", {"nonce": challenge["nonce"], "signature": signature})
        self.api.token = answer["access"]
        return answer

    def quota(self) -> dict[str, Any]:
        """Ask for the credit quota: `personal_sign` of keccak(address ‖ timestamp)."""
        now = int(time.time())
        inner = keccak(bytes.fromhex(self.profile_address[2:]) + now.to_bytes(32, "big"))
        body = {"address": self.profile_address, "timestamp": now, "signature": self._personal_sign(inner)}
        return self.api.post("/api/relay/quota", body)

    def relay_nonce(self, channel: int = 0) -> int:
        """Return the next nonce of the controller in a channel of the key manager."""
        question = keccak(text="getNonce(address,uint128)")[:4]
        data = question + encode(["address", "uint128"], [self.controller_address, channel])
        call = {"to": self.key_manager_address, "data": "0x" + data.hex()}
        return int(self.rpc.call("eth_call", call, "latest"), 16)

    def signed(self, payload: bytes, *, nonce: int | None = None, validity: int = 0) -> dict[str, Any]:
        """Return the body of `execute` for a payload, with the controller's LSP-25 signature."""
        nonce = self.relay_nonce() if nonce is None else nonce
        chain_id = int(self.rpc.call("eth_chainId"), 16)
        words = b"".join(word.to_bytes(32, "big") for word in (_LSP25_VERSION, chain_id, nonce, validity, 0))
        message = encode_intended_validator(self.key_manager_address, primitive=words + payload)
        signature = Account.sign_message(message, self.controller_key).signature.to_0x_hex()
        transaction = {"abi": "0x" + payload.hex(), "signature": signature, "nonce": _number(nonce)}
        if validity:
            transaction["validityTimestamps"] = hex(validity)
        return {"keyManagerAddress": self.key_manager_address, "transaction": transaction}

    def execute(self, body: dict[str, Any]) -> str:
        """Hand in a signed relay call; return the transaction's hash."""
        return str(self.api.post("/api/relay/execute", body)["transactionHash"])

    def transaction_status(self, transaction_hash: str) -> dict[str, Any]:
        """Return the status record of a transaction."""
        return self.api.post("/api/relay/transactionStatus", {"transactionHash": transaction_hash})

    def dashboard(self) -> dict[str, Any]:
        """Return what a wallet shows on one page."""
        found: dict[str, Any] = self.api.get("/api/user/dashboardInfo")
        return found

    def account(self) -> dict[str, Any]:
        """Read the account in short."""
        found: dict[str, Any] = self.api.get("/api/user/account")
        return found

    def ad_networks(self) -> list[dict[str, Any]]:
        """Return the ad networks, with the user's name at each."""
        found: list[dict[str, Any]] = self.api.get("/api/user/adNetworks")["networks"]
        return found

    def check_in_drops(self) -> dict[str, Any]:
        """Return the ranges of what may drop."""
        found: dict[str, Any] = self.api.get("/api/user/checkInDrops")
        return found

    def execute_check_in(self, key: str) -> dict[str, Any]:
        """Check in; the same key answers the same drop."""
        found: dict[str, Any] = self.api.get("/api/user/executeCheckIn", idempotency_key=key)
        return found

    def check_in_fairness(self) -> dict[str, Any]:
        """Return promised and public seeds."""
        found: dict[str, Any] = self.api.get("/api/user/checkInFairness")
        return found

    def create_customer(self) -> dict[str, Any]:
        """Have a customer made for the profile; return the link to it."""
        return self.api.post("/api/payments/createCustomer", {})

    def setup_intent(self) -> str:
        """Return a client secret to capture a card with."""
        return str(self.api.get("/api/payments/getSetupIntent")["clientSecret"])

    def upsert_subscription(self, amount_minor: int, **wishes: Any) -> dict[str, Any]:
        """Begin or change the monthly subscription; `wishes` are further members of the body."""
        body = {"subscriptionCost": amount_minor, **wishes}
        return self.api.post("/api/payments/upsertSubscription", body)

    def cancel_subscription(self, *, immediately: bool) -> dict[str, Any]:
        """End the subscription, at once or with its running period."""
        return self.api.delete("/api/payments/cancelSubscription", {"cancelImmediately": immediately})

    def _personal_sign(self, message: bytes) -> str:
        signed = Account.sign_message(encode_defunct(primitive=message), self.controller_key)
        return str(signed.signature.to_0x_hex())


def _number(value: int) -> int | str:
    """Return a JSON number while every reader keeps it exact, else its decimal text."""
    return value if value < 2**53 else str(value)
