"""A second real chain beside the dev chain, which is home: the same contracts at the same addresses, no profiles."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from django.utils import timezone
from pytest_django import Settings

from devstack.rpc import Rpc
from devstack.services.anvil import Anvil
from devstack.world.world import World, load_world
from gateway.chain.client import set_chain_client
from gateway.chain.config import on_chain
from gateway.chain.signing import get_signer, set_signer
from relay.services.fleet import relayers
from tests.relay.chain import Chain
from tests.relay.two_chains import ETHER, settings_of
from tests.relay.workers import broadcast_all, track


class _FarAnvil(Anvil):
    """The node of the other chain."""

    chain_id: ClassVar[int] = random.randrange(10**6, 10**9)


@dataclass(frozen=True)
class FarChain:
    """The chain: its node, and the contracts on it. Blocks come only when a test mines."""

    node: _FarAnvil
    world: World

    @property
    def rpc(self) -> Rpc:
        return self.node.rpc

    @property
    def chain_id(self) -> int:
        return self.node.chain_id

    @property
    def control(self) -> Chain:
        return Chain(self)

    def settle(self) -> int:
        """Send, mine the confirmations and track; return how many deployments were settled."""
        with on_chain(self.chain_id):
            broadcast_all()
            self.control.mine(2)
            return track()


@contextmanager
def running_far_chain(folder: Path) -> Iterator[FarChain]:
    """Run the node during the block."""
    node = _FarAnvil(folder, folder / "log", block_time=None)
    with node.running():
        world = load_world(node.rpc, folder / "world.json")
        node.mine_a_past()
        node.rpc.call("evm_setAutomine", False)
        yield FarChain(node, world)


@contextmanager
def served(chain: FarChain, settings: Settings) -> Iterator[FarChain]:
    """Add the chain to the service, with relayers that have coins, for the block."""
    chain_id = chain.chain_id
    its = settings_of(chain_id, rpc_urls=(chain.node.url,), relayer_keys=settings.RELAY_RELAYER_KEYS)
    settings.CHAINS = {**settings.CHAINS, chain_id: its}
    with on_chain(chain_id):
        chain.world.fund(100 * ETHER, *get_signer().addresses())
        relayers.sync(now=timezone.now())
    try:
        yield chain
    finally:
        chain.control.drop_pool()
        set_chain_client(None, chain_id=chain_id)
        set_signer(None)
