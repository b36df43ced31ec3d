"""
A small wallet: one controller key of one profile, using the client package.

It shares no code with the service, only the protocol.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eth_abi.abi import encode
from eth_account import Account
from eth_utils.crypto import keccak

from credit_relay_client import Relay, RelayCall, connect, sign_hash
from credit_relay_client.schema import Dashboard, Quota
from devstack.rpc import Rpc

# Much longer than the service's Retry-After while Redis is away, because a busy machine may fail several times.
_PATIENCE_SECONDS = 60


@dataclass
class Wallet:
    """A profile and the controller that signs for it."""

    profile_address: str
    key_manager_address: str
    controller_key: str
    base_url: str
    rpc: Rpc
    relay: Relay = field(init=False)

    def __post_init__(self) -> None:
        key = Account.from_key(self.controller_key)
        self.relay = connect(self.base_url, key, patience_seconds=_PATIENCE_SECONDS)

    @classmethod
    def of(cls, profile: Mapping[str, Any], base_url: str, rpc: Rpc) -> "Wallet":
        """Return the wallet of a profile as the file of a stack describes it."""
        return cls(
            profile["profile_address"],
            profile["key_manager_address"],
            profile["controller_private_key"],
            base_url,
            rpc,
        )

    @property
    def controller_address(self) -> str:
        """The controller's address."""
        return str(self.relay.signer.address)

    @property
    def token(self) -> str:
        """The access token of the session."""
        tokens = self.relay.session(self.profile_address).tokens
        return tokens.access if tokens else ""

    def sign_in(self) -> None:
        """Sign the service's challenge and store the tokens."""
        self.relay.sign_in(self.profile_address)

    def quota(self) -> Quota:
        """Ask for the credit quota."""
        return self.relay.quota(self.profile_address)

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
        call = RelayCall(chain_id, self.key_manager_address, nonce, payload, validity)
        signature = sign_hash(self.relay.signer, call.hash)
        transaction = {"abi": "0x" + payload.hex(), "signature": signature, "nonce": _number(nonce)}
        if validity:
            transaction["validityTimestamps"] = hex(validity)
        return {"keyManagerAddress": self.key_manager_address, "transaction": transaction}

    def execute(self, body: dict[str, Any]) -> str:
        """Submit a signed relay call; return the transaction's hash."""
        return str(self._request("POST", "/api/relay/execute", body)["transactionHash"])

    def transaction_status(self, transaction_hash: str) -> dict[str, Any]:
        """Return the status record of a transaction."""
        return self._request("POST", "/api/relay/transactionStatus", {"transactionHash": transaction_hash})

    def dashboard(self) -> Dashboard:
        """Return the dashboard."""
        return self.relay.dashboard(self.profile_address)

    def account(self) -> dict[str, Any]:
        """Return the account's summary."""
        return self._request("GET", "/api/user/account")

    def ad_networks(self) -> list[dict[str, Any]]:
        """Return the ad networks, with the user's name at each."""
        networks: list[dict[str, Any]] = self._request("GET", "/api/user/adNetworks")["networks"]
        return networks

    def check_in_drops(self) -> dict[str, Any]:
        """Return the drop table."""
        return self._request("GET", "/api/user/checkInDrops")

    def execute_check_in(self, key: str) -> dict[str, Any]:
        """Check in; the same key returns the same drop."""
        return dict(self.relay.check_in(self.profile_address, key))

    def check_in_fairness(self) -> dict[str, Any]:
        """Return the commitments and the revealed seeds."""
        return self._request("GET", "/api/user/checkInFairness")

    def create_customer(self) -> dict[str, Any]:
        """Create a customer for the profile; return its link."""
        return self._request("POST", "/api/payments/createCustomer", {})

    def setup_intent(self) -> str:
        """Return a client secret for capturing a card."""
        return str(self._request("GET", "/api/payments/getSetupIntent")["clientSecret"])

    def upsert_subscription(self, amount_minor: int, **options: Any) -> dict[str, Any]:
        """Create or change the monthly subscription; `options` are further members of the body."""
        body = {"subscriptionCost": amount_minor, **options}
        return self._request("POST", "/api/payments/upsertSubscription", body)

    def cancel_subscription(self, *, immediately: bool) -> dict[str, Any]:
        """Cancel the subscription, at once or at the end of its period."""
        path = "/api/payments/cancelSubscription"
        return self._request("DELETE", path, {"cancelImmediately": immediately})

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = self.relay.session(self.profile_address).request(method, path, body)
        return result


def _number(value: int) -> int | str:
    """Return a JSON number if every reader keeps it exact, else decimal text."""
    return value if value < 2**53 else str(value)
