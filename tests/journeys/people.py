"""People: a profile, the wallet that signs for it, credits, and a way to speak to the service."""

import secrets
from dataclasses import dataclass
from typing import Any

from devstack.rpc import Rpc
from devstack.wallet import Wallet
from devstack.world.abi import calldata
from devstack.world.profiles import Profile
from tests.journeys.api import Api, ApiResponse, until_served
from tests.journeys.waiting import until

_OPEN = {"Pending", "Submitted"}
_CHANNEL_BITS = 128


@dataclass(frozen=True)
class Person:
    """A signed-in user."""

    profile: Profile
    wallet: Wallet
    api: Api
    refresh_token: str

    def signed(
        self, payload: bytes, *, channel: int = 0, ahead: int = 0, validity: int = 0
    ) -> dict[str, Any]:
        """Return the body of a relay call `ahead` calls after the one that the chain expects in the channel."""
        nonce = self.wallet.relay_nonce(channel) + ahead
        return self.wallet.signed(payload, nonce=nonce, validity=validity)

    def new_call(self, **place: int) -> dict[str, Any]:
        """Return the body of a new call."""
        return self.signed(some_data(), **place)

    def execute(self, body: dict[str, Any]) -> ApiResponse:
        """Hand a relay call in."""
        return self.api.ask("/api/relay/execute", body)

    def accepted(self, body: dict[str, Any]) -> str:
        """Hand a relay call in that must be accepted, once its node has responded in time; return its hash."""
        response = until_served(lambda: self.execute(body), only_code="chain-unavailable")
        assert response.status == 200, response
        return str(response.body["transactionHash"])

    def execute_until_served(self, body: dict[str, Any]) -> ApiResponse:
        """Hand a relay call in as a patient wallet does: again for each 503."""
        return until_served(lambda: self.execute(body))

    def accepted_in_the_end(self, body: dict[str, Any]) -> str:
        """Hand a relay call in that must be accepted in the end, as a patient wallet does; return its hash."""
        response = self.execute_until_served(body)
        assert response.status == 200, response
        return str(response.body["transactionHash"])

    def status(self, transaction_hash: str) -> dict[str, Any]:
        """Return the status record of a transaction."""
        return self.wallet.transaction_status(transaction_hash)

    def ending(self, transaction_hash: str) -> dict[str, Any]:
        """Return the status record once it is final."""

        def final() -> dict[str, Any] | None:
            status = self.status(transaction_hash)
            return None if status["status"] in _OPEN else status

        return until(f"{transaction_hash} is settled", final) or {}


def sign_in(profile: Profile, *, base_url: str, rpc_url: str) -> Person:
    """Sign in with the first controller of the profile."""
    key = profile.controller.private_key
    wallet = Wallet(profile.profile_address, profile.key_manager_address, key, base_url, Rpc(rpc_url))
    wallet.sign_in()
    tokens = wallet.relay.session(profile.profile_address).tokens
    assert tokens
    return Person(profile, wallet, Api(base_url, tokens.access), tokens.refresh)


def some_data() -> bytes:
    """Return the payload of a write to an unused data key."""
    return calldata("setData(bytes32,bytes)", secrets.token_bytes(32), secrets.token_bytes(32))


def a_call_to(target: str) -> bytes:
    """Return the payload of a call of the profile to a contract, without value or data."""
    return calldata("execute(uint256,address,uint256,bytes)", 0, target, 0, b"")


def channel_of(relay_nonce: int) -> int:
    """Return the channel of a relay nonce."""
    return relay_nonce >> _CHANNEL_BITS
