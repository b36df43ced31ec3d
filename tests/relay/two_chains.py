"""A second chain beside the dev chain, which is home: a fake one, with copies of profiles at their own addresses."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.utils import timezone
from pytest_django import Settings

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.client import set_chain_client
from gateway.chain.config import on_chain
from gateway.chain.further import ChainSettings
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signing import get_signer, set_signer
from relay.services.fleet import relayers
from signer.deployments import RELEASES
from tests.fakes.chain import FakeChain
from tests.relay.signing import sign_call

GWEI, ETHER = 10**9, 10**18


class ForeignChain(FakeChain):
    """A chain besides home. Blocks come only when a test mines."""

    def __init__(self, services: Services, chain_id: int) -> None:
        super().__init__(chain_id=chain_id)
        self.id, self._services = chain_id, services
        # Trusted code is named by the addresses of its implementations, which are equal on all chains.
        self.universal_profile = services.world.implementations.universal_profile
        self.key_manager = services.world.implementations.key_manager
        self.codes |= {address: self._code_at_home(address) for address in self._implementations()}

    def copy(self, profile: Profile, **permissions: int) -> None:
        """Deploy a profile of home here: at its addresses, with the controllers of its first deployment."""
        held = {one.address: int(one.permissions) for one in profile.controllers} | permissions
        self.create_copy(profile.profile_address, profile.key_manager_address, held)

    def _implementations(self) -> set[str]:
        known = {address for release in RELEASES for address in release[:2]}
        return known | {self.universal_profile, self.key_manager}

    def _code_at_home(self, address: str) -> bytes:
        return bytes.fromhex(self._services.rpc.call("eth_getCode", address, "latest")[2:])

    def sign(self, profile: Profile, **changes: Any) -> RelayCall:
        """Sign a call of the profile for this chain; see `sign_call`."""
        key = changes.get("private_key", profile.controller.private_key)
        if "relay_nonce" not in changes:
            channel = changes.pop("channel", 0)
            controller = next(one.address for one in profile.controllers if one.private_key == key)
            nonce = self.read_relay_nonce(
                key_manager=profile.key_manager_address, controller=controller, channel=channel
            )
            changes["relay_nonce"] = (nonce or 0) + changes.pop("ahead", 0)
        return sign_call(services=self._services, profile=profile, chain_id=self.id, **changes)


def settings_of(chain_id: int, **changes: Any) -> ChainSettings:
    """Return the settings of a further chain, with changes."""
    values: dict[str, Any] = {
        "id": chain_id,
        "name": f"Chain {chain_id}",
        "coin": "ETH",
        "family": "ethereum",
        "explorer_url": "https://explorer.example",
        "rpc_urls": ("http://127.0.0.1:1",),
        "quorum": 1,
        "block_seconds": 2.0,
        "confirmations": 2,
        "finality_blocks": 64,
        "finality_tag": False,
        "fee_floor_wei": 0,
        "fee_cap_wei": 100 * GWEI,
        "tip_wei": GWEI // 10,
        "relayer_keys": (),
        "treasury_key": "",
        "treasury_address": "",
        "top_up_below_wei": ETHER // 100,
        "top_up_daily_wei": ETHER,
        "loss_per_hour_wei": 10 * ETHER,
        "credit_wei": 10**12,
        "max_call_credits": 0,
        "price_days": 30,
        "price_margin_percent": 25,
        "takes_calls": True,
        "spends_given_credits": True,
    }
    return ChainSettings(**values | changes)


@contextmanager
def foreign_chain(services: Services, settings: Settings, **changes: Any) -> Iterator[ForeignChain]:
    """Add a chain to the service, with relayers that have coins, for the block."""
    chain_id = random.randrange(10**6, 10**9)
    keys = {"relayer_keys": settings.RELAY_RELAYER_KEYS}
    settings.CHAINS = {**settings.CHAINS, chain_id: settings_of(chain_id, **keys | changes)}
    chain = ForeignChain(services, chain_id)
    set_chain_client(chain, chain_id=chain_id)
    with on_chain(chain_id):
        chain.fund(100 * ETHER, *get_signer().addresses())
        relayers.sync(now=timezone.now())
    try:
        yield chain
    finally:
        set_chain_client(None, chain_id=chain_id)
        set_signer(None)
