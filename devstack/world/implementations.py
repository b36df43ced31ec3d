"""The contracts that stand once on a LUKSO chain and that every profile points to."""

from dataclasses import dataclass

from devstack.toolchain import creation_code
from devstack.world.deployer import Deployer


@dataclass(frozen=True)
class Implementations:
    """Their addresses."""

    universal_profile: str
    key_manager: str
    factory: str
    post_deployment_module: str
    receiver_delegate: str


_CONTRACTS = (
    "UniversalProfileInit",
    "LSP6KeyManagerInit",
    "LSP23LinkedContractsFactory",
    "UniversalProfileInitPostDeploymentModule",
    "LSP1UniversalReceiverDelegateUP",
)


def deploy_implementations(deployer: Deployer) -> Implementations:
    """Deploy them all in one block."""
    return Implementations(*deployer.deploy(*map(creation_code, _CONTRACTS)))
