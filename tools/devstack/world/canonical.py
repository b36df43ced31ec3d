"""The contracts of Universal Profiles on a dev chain, at the addresses that they have on every chain."""

from dataclasses import dataclass
from pathlib import Path

from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from devstack.toolchain import artifact, creation_code
from devstack.world.deployer import Call, Deployer

CREATE2_DEPLOYER = "0x4e59b44847b379578588920cA78FbF26c0B4956C"
_CREATE2_DEPLOYER_CODE = (
    "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f5"
    "8015156039578182fd5b8082525050506014600cf3"
)
# The constructor of an implementation sets this, so that nobody initializes the implementation itself.
_INITIALIZED = {"0x" + "00" * 32: "0x" + "00" * 31 + "ff"}
# Multicall3's runtime code of every chain (MIT licence): its creation code is in no package.
MULTICALL_CODE = "0x" + "".join((Path(__file__).parent / "multicall3.hex").read_text().split())
_SALT = "feed" * 16
_FACTORY_SALT = "12a6712f113536d8b01d99f72ce168c7e1090124db54cd16f03c20000022178c"
# npm's build of the factory differs from the deployed one only in the compiler's hash of its sources.
_FACTORY_METADATA_AT = 4668
_FACTORY_METADATA = "add0ea42f8f9e02abd8c7da64d0b13eef395e008fa30377a6b79ea444e7d21bb"


@dataclass(frozen=True)
class Implementations:
    """Their addresses."""

    universal_profile: str = "0x3024D38EA2434BA6635003Dc1BDC0daB5882ED4F"
    key_manager: str = "0x2Fe3AeD98684E7351aD2D408A43cE09a738BF8a4"
    factory: str = "0x2300000A84D25dF63081feAa37ba6b62C4c89a30"
    post_deployment_module: str = "0x000000000066093407b6704B89793beFfD0D8F00"
    receiver_delegate: str = "0x7870C5B8BC9572A8001C3f96f7ff59961B23500D"
    multicall: str = "0xcA11bde05977b3631167028862bE2a173976CA11"


CANONICAL = Implementations()


@dataclass(frozen=True)
class Predeployed:
    """A contract that is written into a chain's state: its code and its storage by slot."""

    address: str
    code: str
    storage: dict[str, str]


def predeployed() -> list[Predeployed]:
    """
    Return the contracts that no transaction can deploy at their addresses here.

    The post-deployment module is a newer build than the deployed one, whose creation code is not on npm.
    """
    module = artifact("UniversalProfileInitPostDeploymentModule")["deployedBytecode"]
    return [
        Predeployed(CREATE2_DEPLOYER, _CREATE2_DEPLOYER_CODE, {}),
        Predeployed(CANONICAL.post_deployment_module, module, _INITIALIZED),
        Predeployed(CANONICAL.multicall, MULTICALL_CODE, {}),
    ]


def deploy_canonical_contracts(deployer: Deployer) -> Implementations:
    """Deploy those that the chain lacks, in one block, and return their addresses."""
    for contract in predeployed():
        if _is_missing(deployer, contract.address):
            deployer.set_contract(contract.address, contract.code, contract.storage)
    deployments = {
        CANONICAL.universal_profile: _creation(_SALT, creation_code("UniversalProfileInit")),
        CANONICAL.key_manager: _creation(_SALT, creation_code("LSP6KeyManagerInit")),
        CANONICAL.receiver_delegate: _creation(_SALT, creation_code("LSP1UniversalReceiverDelegateUP")),
        CANONICAL.factory: _creation(_FACTORY_SALT, _factory_code()),
    }
    for address, data in deployments.items():
        if create2_address(data) != address:
            raise RuntimeError(f"the code for {address} is another version's, so its address would differ")
    deployer.send(
        [
            Call(CREATE2_DEPLOYER, data)
            for address, data in deployments.items()
            if _is_missing(deployer, address)
        ]
    )
    return CANONICAL


def create2_address(data: bytes) -> str:
    """Return the address at which the CREATE2 deployer puts a contract; `data` is the salt and the creation code."""
    salt, code = data[:32], data[32:]
    deployer = bytes.fromhex(CREATE2_DEPLOYER[2:])
    return to_checksum_address(keccak(b"\xff" + deployer + salt + keccak(code))[12:])


def _creation(salt: str, code: bytes) -> bytes:
    return bytes.fromhex(salt) + code


def _factory_code() -> bytes:
    code, at = creation_code("LSP23LinkedContractsFactory"), _FACTORY_METADATA_AT
    return code[:at] + bytes.fromhex(_FACTORY_METADATA) + code[at + 32 :]


def _is_missing(deployer: Deployer, address: str) -> bool:
    return bool(deployer.rpc.call("eth_getCode", address, "latest") == "0x")
