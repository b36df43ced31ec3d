"""The contracts of the dev chain, kept across restarts."""

import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from devstack.console import step
from devstack.files import read_json, write_json
from devstack.rpc import Rpc
from devstack.world.canonical import CANONICAL, Implementations, deploy_canonical_contracts
from devstack.world.deployer import Deployer
from devstack.world.profiles import Profile, ProfilePlan, create_profiles
from devstack.world.test_contracts import (
    Flaky,
    deploy_flaky,
    deploy_impostor,
    deploy_stray_key_manager,
    deploy_untrusted_profile,
)


@dataclass(frozen=True)
class World:
    """The contracts of the chain, and the deployer of more."""

    deployer: Deployer
    implementations: Implementations

    @property
    def identity(self) -> str:
        """The deployer's random address, which identifies the chain."""
        return self.deployer.address

    def create_profiles(self, *plans: ProfilePlan) -> list[Profile]:
        """Deploy profiles with the given controllers in few blocks; return them in the same order."""
        return create_profiles(self.deployer, self.implementations, plans)

    def fund(self, wei: int, *addresses: str) -> None:
        """Set the balance of each address."""
        self.deployer.fund(wei, *addresses)

    def deploy_flaky(self) -> Flaky:
        """Deploy a target that reverts while it is flipped."""
        return deploy_flaky(self.deployer)

    def deploy_impostor(self) -> str:
        """Deploy one contract that imitates a profile and its key manager; return its address."""
        return deploy_impostor(self.deployer)

    def deploy_stray_key_manager(self, profile_address: str) -> str:
        """Deploy a key manager whose `target()` is a profile that it does not own."""
        return deploy_stray_key_manager(self.deployer, self.implementations, profile_address)

    def deploy_untrusted_profile(self) -> Profile:
        """Deploy a working profile whose code points to no known implementation."""
        return deploy_untrusted_profile(self.deployer)


def load_world(rpc: Rpc, path: Path) -> World:
    """
    Return the chain's contracts and the deployer saved in `path`; on a new chain, deploy them with another deployer.
    """
    saved = read_json(path)
    if saved and _exist(rpc):
        return World(Deployer(rpc, saved["deployer_key"]), CANONICAL)
    deployer_key = "0x" + secrets.token_hex(32)
    deployer = Deployer(rpc, deployer_key)
    with step("deploying the LUKSO contracts"):
        contracts = deploy_canonical_contracts(deployer)
    write_json(path, {"deployer_key": deployer_key})
    return World(deployer, contracts)


def _exist(rpc: Rpc) -> bool:
    codes = rpc.batch([("eth_getCode", address, "latest") for address in asdict(CANONICAL).values()])
    return all(code != "0x" for code in codes)
