"""The second chain of `make run`: one of the OP stack, on which the demo's first profile has a copy."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devstack.console import step
from devstack.environment import CREDIT_WEI
from devstack.rpc import Rpc
from devstack.services.anvil import SECOND_CHAIN_ID, OpAnvil
from devstack.world.canonical import CANONICAL
from devstack.world.deployer import ETHER, Call
from devstack.world.profiles import DEPLOYED, Profile
from devstack.world.world import World, load_world

_BLOCK_SECONDS = 1
_DEPLOYMENT_GAS = 6_000_000
_RPC_URLS = f"CHAIN_{SECOND_CHAIN_ID}_RPC_URLS"


@dataclass(frozen=True)
class SecondChain:
    """The running node, and the contracts on its chain."""

    node: OpAnvil
    world: World

    @property
    def settings(self) -> dict[str, str]:
        """The service's settings of the chain."""
        return {
            "CHAINS": str(SECOND_CHAIN_ID),
            _RPC_URLS: self.node.url,
            f"CHAIN_{SECOND_CHAIN_ID}_CREDIT_WEI": str(CREDIT_WEI),
            f"CHAIN_{SECOND_CHAIN_ID}_LOSS_PER_HOUR_WEI": str(ETHER),
        }

    def copy(self, profile: Profile, *, home: Rpc) -> None:
        """Deploy the profile of the home chain here, at the same addresses, by the factory's call that created it."""
        if self.node.rpc.call("eth_getCode", profile.profile_address, "latest") != "0x":
            return
        creation = home.call("eth_getTransactionByHash", _creation_of(profile, home))
        data, wei = bytes.fromhex(creation["input"][2:]), int(creation["value"], 16)
        self.world.deployer.send([Call(CANONICAL.factory, data, wei, gas=_DEPLOYMENT_GAS)])

    def fund(self, *addresses: str) -> None:
        """Give these accounts coins."""
        self.world.fund(ETHER, *addresses)


@contextmanager
def second_chain(directory: Path, logs: Path) -> Iterator[SecondChain]:
    """Run the node with its data in `directory` during the block."""
    node = OpAnvil(directory, logs, block_time=_BLOCK_SECONDS)
    with node.running():
        with step("a second chain, of the OP stack"):
            node.mine_a_past()
            world = load_world(node.rpc, directory / "world.json")
        yield SecondChain(node, world)


def described_second(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the URL and the id of the second chain for the file of the stack; empty without one."""
    url = settings.get(_RPC_URLS)
    return {"rpc_url": url, "chain_id": SECOND_CHAIN_ID} if url else {}


def _creation_of(profile: Profile, home: Rpc) -> str:
    topics = ["0x" + DEPLOYED.hex(), "0x" + "00" * 12 + profile.profile_address[2:].lower()]
    wanted = {"fromBlock": "0x0", "toBlock": "latest", "address": CANONICAL.factory, "topics": topics}
    (log,) = home.call("eth_getLogs", wanted)
    return str(log["transactionHash"])
