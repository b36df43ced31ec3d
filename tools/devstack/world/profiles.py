"""Universal Profiles, made as LUKSO's mainnet makes them: LSP-23, two EIP-1167 proxies each."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from eth_abi.abi import encode
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from devstack.world.abi import calldata, pairs, selector
from devstack.world.canonical import Implementations
from devstack.world.cards import LSP3_PROFILE_KEY
from devstack.world.deployer import ETHER, Call, Deployer, Receipt
from devstack.world.keys import address_of
from devstack.world.permissions import ALL_PERMISSIONS, Permission, permission_entries

_RECEIVER_KEY = bytes.fromhex("0cfc51aec37c55a4d0b1a65c6255c4bf2fbdf6277f3cc0730c45b828b6db8b47")
_RECEIVER_PERMISSIONS = Permission.REENTRANCY | Permission.SUPER_SETDATA
_PRIMARY, _SECONDARY = "(bytes32,uint256,address,bytes)", "(uint256,address,bytes,bool,bytes)"
_DEPLOY = selector(f"deployERC1167Proxies({_PRIMARY},{_SECONDARY},address,bytes)")
DEPLOYED = keccak(text=f"DeployedERC1167Proxies(address,address,{_PRIMARY},{_SECONDARY},address,bytes)")
_BATCH = 50


@dataclass(frozen=True)
class ControllerPlan:
    """A planned controller, with a new key unless one is given."""

    permissions: Permission = ALL_PERMISSIONS
    allowed_calls: bytes = b""
    private_key: str = field(default_factory=lambda: "0x" + secrets.token_hex(32))


@dataclass(frozen=True)
class ProfilePlan:
    """A planned profile: its controllers, its LYX (in wei), and its LSP-3 data."""

    controllers: Sequence[ControllerPlan] = field(default_factory=lambda: (ControllerPlan(),))
    balance_wei: int = ETHER
    card: bytes = b""


@dataclass(frozen=True)
class Controller:
    """A controller of a profile, with its key."""

    address: str
    private_key: str
    permissions: Permission


@dataclass(frozen=True)
class Profile:
    """A Universal Profile, its key manager and its controllers."""

    profile_address: str
    key_manager_address: str
    controllers: tuple[Controller, ...]

    @property
    def controller(self) -> Controller:
        """The first controller."""
        return self.controllers[0]


def create_profiles(
    deployer: Deployer, implementations: Implementations, plans: Sequence[ProfilePlan]
) -> list[Profile]:
    """Deploy the profiles in few blocks; return them in the order of the plans."""
    receipts: list[Receipt] = []
    for start in range(0, len(plans), _BATCH):
        calls = [_creation(implementations, plan) for plan in plans[start : start + _BATCH]]
        receipts += deployer.send(calls)
    return [_created(plan, receipt) for plan, receipt in zip(plans, receipts, strict=True)]


def _creation(implementations: Implementations, plan: ProfilePlan) -> Call:
    module = implementations.post_deployment_module
    start = calldata("initialize(address)", module)
    primary = (secrets.token_bytes(32), plan.balance_wei, implementations.universal_profile, start)
    secondary = (0, implementations.key_manager, selector("initialize(address)"), True, b"")
    data = encode(["bytes32[]", "bytes[]"], pairs(_profile_data(implementations, plan)))
    arguments = encode([_PRIMARY, _SECONDARY, "address", "bytes"], [primary, secondary, module, data])
    return Call(implementations.factory, _DEPLOY + arguments, plan.balance_wei, gas=6_000_000)


def _profile_data(implementations: Implementations, plan: ProfilePlan) -> list[tuple[bytes, bytes]]:
    receiver = implementations.receiver_delegate
    controllers = [(_address(item), item.permissions, item.allowed_calls) for item in plan.controllers]
    entries = permission_entries([*controllers, (receiver, _RECEIVER_PERMISSIONS, b"")])
    shown = [(LSP3_PROFILE_KEY, plan.card)] if plan.card else []
    return [(_RECEIVER_KEY, bytes.fromhex(receiver[2:])), *entries, *shown]


def _created(plan: ProfilePlan, receipt: Receipt) -> Profile:
    topics = next(log["topics"] for log in receipt["logs"] if log["topics"][0] == "0x" + DEPLOYED.hex())
    profile, manager = (to_checksum_address("0x" + topic[-40:]) for topic in topics[1:3])
    controllers = (
        Controller(_address(item), item.private_key, item.permissions) for item in plan.controllers
    )
    return Profile(profile, manager, tuple(controllers))


def _address(plan: ControllerPlan) -> str:
    return address_of(plan.private_key)
