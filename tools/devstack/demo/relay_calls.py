"""Relay calls of demo users, accepted, sent, mined and settled by the services; some revert."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from devstack.rpc import Rpc
from devstack.world.abi import calldata
from devstack.world.deployer import ETHER
from devstack.world.keys import address_of, sign_digest
from gateway.chain.config import get_chain
from gateway.chain.lsp25 import RelayCall, relay_digest
from relay.services.accepting import calls, submission
from relay.services.sending import broadcasting
from relay.services.settling import tracking
from users.models import User

_OVERSPENT_WEI = 6 * ETHER // 10  # of a profile's first controller


@dataclass(frozen=True)
class Caller:
    """A profile on the chain, and its controller's key."""

    profile_address: str
    key_manager_address: str
    controller_private_key: str

    @property
    def controller_address(self) -> str:
        """The address of that controller."""
        return address_of(self.controller_private_key)

    def signed(self, payload: bytes, relay_nonce: int) -> RelayCall:
        """Return the relay call of a payload."""
        digest = relay_digest(
            chain_id=get_chain().id,
            key_manager=self.key_manager_address,
            relay_nonce=relay_nonce,
            validity=0,
            payload=payload,
        )
        signature = sign_digest(self.controller_private_key, digest)
        return RelayCall(self.key_manager_address, payload, signature, relay_nonce)


def relay_calls(callers: Mapping[User, Caller], *, overspender: int, channel: int, now: datetime) -> None:
    """
    Relay two calls of each caller, in two channels from `channel` on, and wait for their settlement.

    The caller with the index `overspender` sends most of the profile's LYX away, twice: neither call fails in the
    preflight before the other is mined, so both are accepted and the second one reverts.
    """
    for place, (user, caller) in enumerate(callers.items()):
        for number in (channel, channel + 1):
            payload = _transfer(number) if place == overspender else _data(number)
            owner = calls.Caller(user.pk, str(user.profile_address))
            submission.execute(caller=owner, call=caller.signed(payload, number << 128), now=now)
    broadcasting.broadcast(now=now)
    rpc = Rpc(get_chain().node_urls[0])
    for _ in range(get_chain().confirmations + 1):
        rpc.call("evm_mine")
    tracking.Tracker().track_new_block(now=now)


def _data(number: int) -> bytes:
    return calldata("setData(bytes32,bytes)", number.to_bytes(32), b"demo")


def _transfer(number: int) -> bytes:
    recipient = f"0x{number + 2**32:040x}"
    return calldata("execute(uint256,address,uint256,bytes)", 0, recipient, _OVERSPENT_WEI, b"")
