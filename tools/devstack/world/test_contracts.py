"""
Test contracts: a target that fails on demand, a false profile, and LUKSO code that a gateway must not trust.

The first two are written in EVM bytecode, because the stack has no compiler.
"""

import secrets
from dataclasses import dataclass

from eth_abi.abi import encode

from devstack.toolchain import creation_code
from devstack.world.abi import calldata, pairs, selector
from devstack.world.canonical import Implementations
from devstack.world.deployer import ETHER, Call, Deployer
from devstack.world.keys import address_of
from devstack.world.permissions import ALL_PERMISSIONS, Permission, permission_entries
from devstack.world.profiles import Controller, Profile

FLIP = selector("flip()")

# Storage 0: the flag. Storage 1: how often a call has succeeded.
_FLAKY = (
    "6000 35 60e0 1c"  # 00 PUSH1 0  CALLDATALOAD  PUSH1 e0  SHR         the selector
    "63 cde4efa9 14"  #  06 PUSH4 flip()  EQ
    "60 1f 57"  #        0c PUSH1 1f  JUMPI                              flip() goes to 1f
    "6000 54"  #         0f PUSH1 0  SLOAD                               the flag
    "60 28 57"  #        12 PUSH1 28  JUMPI                              set: fail at 28
    "6001 54 6001 01"  # 15 PUSH1 1  SLOAD  PUSH1 1  ADD
    "6001 55 00"  #      1b PUSH1 1  SSTORE  STOP                        count the success
    "5b 6000 54 15"  #   1f JUMPDEST  PUSH1 0  SLOAD  ISZERO
    "6000 55 00"  #      24 PUSH1 0  SSTORE  STOP                        flag = not flag
    "5b 6000 6000 fd"  # 28 JUMPDEST  PUSH1 0  PUSH1 0  REVERT
)
# Its target and owner are itself, and it accepts every signature and permission.
_IMPOSTOR = (
    "6000 35 60e0 1c"  #    00 PUSH1 0  CALLDATALOAD  PUSH1 e0  SHR      the selector
    "80 63 d4b83992 14"  #  06 DUP1  PUSH4 target()  EQ
    "60 4d 57"  #           0d PUSH1 4d  JUMPI
    "80 63 8da5cb5b 14"  #  10 DUP1  PUSH4 owner()  EQ
    "60 4d 57"  #           17 PUSH1 4d  JUMPI
    "80 63 1626ba7e 14"  #  1a DUP1  PUSH4 isValidSignature(bytes32,bytes)  EQ
    "60 57 57"  #           21 PUSH1 57  JUMPI
    "80 63 01ffc9a7 14"  #  24 DUP1  PUSH4 supportsInterface(bytes4)  EQ
    "60 63 57"  #           2b PUSH1 63  JUMPI
    "80 63 b44581d9 14"  #  2e DUP1  PUSH4 getNonce(address,uint128)  EQ
    "60 6e 57"  #           35 PUSH1 6e  JUMPI
    "6020 6000 52"  #       38 PUSH1 20  PUSH1 0  MSTORE                 any other question:
    "6020 6020 52"  #       3d PUSH1 20  PUSH1 20  MSTORE                32 bytes of data,
    "6000 19 6040 52"  #    42 PUSH1 0  NOT  PUSH1 40  MSTORE            all bits set
    "6060 6000 f3"  #       48 PUSH1 60  PUSH1 0  RETURN
    "5b 30 6000 52"  #      4d JUMPDEST  ADDRESS  PUSH1 0  MSTORE
    "6020 6000 f3"  #       52 PUSH1 20  PUSH1 0  RETURN                 itself
    "5b 60e0 1b 6000 52"  # 57 JUMPDEST  PUSH1 e0  SHL  PUSH1 0  MSTORE
    "6020 6000 f3"  #       5e PUSH1 20  PUSH1 0  RETURN                 the magic value
    "5b 6001 6000 52"  #    63 JUMPDEST  PUSH1 1  PUSH1 0  MSTORE
    "6020 6000 f3"  #       69 PUSH1 20  PUSH1 0  RETURN                 true
    "5b 6020 6000 f3"  #    6e JUMPDEST  PUSH1 20  PUSH1 0  RETURN       zero
)


@dataclass(frozen=True)
class Flaky:
    """A target that accepts any call and value; after a flip it reverts until the next flip."""

    address: str
    deployer: Deployer

    @property
    def flip_call(self) -> Call:
        """The transaction that flips it, from any account."""
        return Call(self.address, FLIP, gas=100_000)

    def flip(self) -> None:
        """Flip it in a block mined at once."""
        self.deployer.send([self.flip_call])

    @property
    def successes(self) -> int:
        """The number of successful calls."""
        return int(self.deployer.rpc.call("eth_getStorageAt", self.address, "0x1", "latest"), 16)


def deploy_flaky(deployer: Deployer) -> Flaky:
    """Deploy a target that succeeds for now."""
    return Flaky(deployer.deploy(_creation(_FLAKY))[0], deployer)


def deploy_impostor(deployer: Deployer) -> str:
    """Deploy one contract that imitates a profile, its key manager and its owner; return its address."""
    return deployer.deploy(_creation(_IMPOSTOR))[0]


def _creation(listing: tuple[str, ...] | str) -> bytes:
    """Return code that deploys the listing: PUSH1 size DUP1 PUSH1 0b PUSH1 0 CODECOPY PUSH1 0 RETURN."""
    runtime = bytes.fromhex("".join(listing))
    return bytes([0x60, len(runtime), *bytes.fromhex("80600b6000396000f3")]) + runtime


_PROXY = "3d602d80600a3d3981f3363d3d373d3d3d363d73{}5af43d82803e903d91602b57fd5bf3"


def deploy_stray_key_manager(deployer: Deployer, implementations: Implementations, profile: str) -> str:
    """Deploy a key manager of trusted code whose `target()` is a profile that it does not own."""
    manager = deployer.deploy(bytes.fromhex(_PROXY.format(implementations.key_manager[2:])))[0]
    deployer.send([Call(manager, calldata("initialize(address)", profile))])
    return manager


def deploy_untrusted_profile(deployer: Deployer) -> Profile:
    """Deploy a working profile whose code points to no known implementation."""
    owner = deployer.address
    profile = deployer.deploy(creation_code("UniversalProfile") + encode(["address"], [owner]))[0]
    manager = deployer.deploy(creation_code("LSP6KeyManager") + encode(["address"], [profile]))[0]
    key = "0x" + secrets.token_hex(32)
    controller = Controller(address_of(key), key, ALL_PERMISSIONS)
    controllers = [(controller.address, ALL_PERMISSIONS, b""), (owner, Permission.CHANGEOWNER, b"")]
    set_data = calldata("setDataBatch(bytes32[],bytes[])", *pairs(permission_entries(controllers)))
    hand_over = calldata("transferOwnership(address)", manager)
    take_over = calldata("execute(bytes)", calldata("acceptOwnership()"))
    deployer.send([Call(profile, set_data, value=ETHER), Call(profile, hand_over), Call(manager, take_over)])
    return Profile(profile, manager, (controller,))
