"""Real LUKSO code in places where a gateway must not trust it."""

import secrets

from eth_abi.abi import encode
from eth_account import Account

from devstack.toolchain import creation_code
from devstack.world.abi import calldata, pairs
from devstack.world.deployer import ETHER, Call, Deployer
from devstack.world.implementations import Implementations
from devstack.world.permissions import ALL_PERMISSIONS, Permission, permission_entries
from devstack.world.profiles import Controller, Profile

_PROXY = "3d602d80600a3d3981f3363d3d373d3d3d363d73{}5af43d82803e903d91602b57fd5bf3"


def deploy_stray_key_manager(deployer: Deployer, implementations: Implementations, profile: str) -> str:
    """Deploy a key manager of trusted code whose `target()` is a profile that it does not own."""
    manager = deployer.deploy(bytes.fromhex(_PROXY.format(implementations.key_manager[2:])))[0]
    deployer.send([Call(manager, calldata("initialize(address)", profile))])
    return manager


def deploy_untrusted_profile(deployer: Deployer) -> Profile:
    """Deploy a working profile whose code points to no known implementation."""
    owner = deployer.account.address
    profile = deployer.deploy(creation_code("UniversalProfile") + encode(["address"], [owner]))[0]
    manager = deployer.deploy(creation_code("LSP6KeyManager") + encode(["address"], [profile]))[0]
    key = "0x" + secrets.token_hex(32)
    controller = Controller(str(Account.from_key(key).address), key, ALL_PERMISSIONS)
    people = [(controller.address, ALL_PERMISSIONS, b""), (owner, Permission.CHANGEOWNER, b"")]
    set_data = calldata("setDataBatch(bytes32[],bytes[])", *pairs(permission_entries(people)))
    hand_over = calldata("transferOwnership(address)", manager)
    take_over = calldata("execute(bytes)", calldata("acceptOwnership()"))
    deployer.send([Call(profile, set_data, value=ETHER), Call(profile, hand_over), Call(manager, take_over)])
    return Profile(profile, manager, (controller,))
