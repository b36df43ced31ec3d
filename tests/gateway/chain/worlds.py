"""The two chains that the contract suite runs on, with the same handles for a test."""

from dataclasses import dataclass
from typing import Any, Protocol

from devstack.world.permissions import Permission, allow_transfers_to
from devstack.world.profiles import ControllerPlan, ProfilePlan
from devstack.world.world import World
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signing import LocalSigner
from gateway.chain.types import ChainClient, RelayQuery, SendKind
from signer.transactions import SignedTransaction, UnsignedTransaction
from tests.fakes.profiles import Controller, Profile, random_key, sign_relay_call

CHAIN_ID = 4201
ETHER = 10**18
GWEI = 10**9


class Target(Protocol):
    """A contract that fails on demand."""

    @property
    def address(self) -> str:
        """Where it stands."""

    def flip(self) -> None:
        """Make it revert, or succeed again."""


class Handles(Protocol):
    """What a test may do to the world."""

    def create_profile(self, *controllers: Controller, balance_wei: int = ETHER) -> Profile: ...
    def deploy_flaky(self) -> Target: ...
    def deploy_impostor(self) -> str: ...
    def deploy_stray_key_manager(self, profile_address: str) -> str: ...
    def delegate(self, address: str) -> None: ...
    def fund(self, wei: int, *addresses: str) -> None: ...
    def mine(self, count: int = 1) -> None: ...
    def reorganise(self, depth: int = 1) -> None: ...


class AnvilWorld:
    """The dev stack's chain, whose blocks come only when a test asks for one."""

    def __init__(self, world: World) -> None:
        self._world = world

    def create_profile(self, *controllers: Controller, balance_wei: int = ETHER) -> Profile:
        people = controllers or (Controller(),)
        plan = ProfilePlan([_plan(person) for person in people], balance_wei)
        made = self._world.create_profiles(plan)[0]
        return Profile(made.profile_address, made.key_manager_address, people)

    def deploy_flaky(self) -> Target:
        return self._world.deploy_flaky()

    def deploy_impostor(self) -> str:
        return self._world.deploy_impostor()

    def deploy_stray_key_manager(self, profile_address: str) -> str:
        return self._world.deploy_stray_key_manager(profile_address)

    def delegate(self, address: str) -> None:
        """Give the account the code of a delegation (EIP-7702)."""
        self._world.deployer.rpc.call("anvil_setCode", address, "0xef0100" + "ab" * 20)

    def fund(self, wei: int, *addresses: str) -> None:
        self._world.fund(wei, *addresses)

    def mine(self, count: int = 1) -> None:
        self._world.deployer.rpc.batch([("evm_mine",)] * count)

    def reorganise(self, depth: int = 1) -> None:
        """Replace the newest blocks by empty ones; what they held is forgotten, by the pool as well."""
        self._world.deployer.rpc.call("anvil_reorg", depth, [])


def _plan(person: Controller) -> ControllerPlan:
    calls = b"".join(allow_transfers_to(target) for target in person.allowed_targets)
    return ControllerPlan(Permission(person.permissions), calls, person.private_key)


@dataclass(frozen=True)
class Setting:
    """One world, the client over it, and a funded relayer."""

    world: Handles
    client: ChainClient
    signer: LocalSigner

    @property
    def relayer(self) -> str:
        """The relayer's address."""
        return self.signer.addresses()[0]

    def call(self, profile: Profile, payload: bytes, **fields: Any) -> RelayCall:
        """Return a signed relay call for this chain."""
        return sign_relay_call(profile, payload, chain_id=CHAIN_ID, **fields)

    def query(self, profile: Profile, call: RelayCall | None = None, **fields: Any) -> RelayQuery:
        """Return the question about the first controller's call of a profile; without a call it tries an empty one."""
        defaults: dict[str, Any] = {
            "profile": profile.profile_address,
            "key_manager": profile.key_manager_address,
            "controller": profile.controller.address,
            "channel": call.channel if call else 0,
            "sender": self.relayer,
            "calldata": calldata_of(call) if call else b"",
            "gas_limit": None,
            "gas_cap": 3_000_000,
        }
        return RelayQuery(**defaults | fields)

    def simulate(self, call: RelayCall, *, gas_cap: int = 3_000_000) -> int:
        """Return the estimated gas of a relay call."""
        return self.client.simulate_relay_call(
            sender=self.relayer, key_manager=call.key_manager, calldata=calldata_of(call), gas_cap=gas_cap
        )

    def signed(self, call: RelayCall, **fields: Any) -> SignedTransaction:
        """Return the relayer's transaction for the call, with the next account nonce unless another is given."""
        return self.transaction(call.key_manager, calldata_of(call), **fields)

    def transaction(self, to: str, data: bytes = b"", **fields: Any) -> SignedTransaction:
        """Return a transaction of the relayer, well priced unless fields override it."""
        if "account_nonce" not in fields:
            fields["account_nonce"] = self.account_nonce
        defaults: dict[str, Any] = {
            "chain_id": CHAIN_ID,
            "max_priority_fee_per_gas_wei": GWEI,
            "max_fee_per_gas_wei": 10 * GWEI,
            "gas_limit": 500_000 if data else 21_000,
            "to": to,
            "data": data,
        }
        return self.signer.sign(relayer=self.relayer, transaction=UnsignedTransaction(**defaults | fields))

    @property
    def account_nonce(self) -> int:
        """The relayer's next account nonce at the newest block."""
        view = self.client.read_chain(transaction_hashes=[], accounts=[self.relayer], confirmations=1)
        return view.accounts[self.relayer].latest_nonce

    def relay_nonce(self, profile: Profile) -> int:
        """Return the next relay nonce of the profile's first controller, in channel 0."""
        relay_nonce = self.client.read_relay_nonce(
            key_manager=profile.key_manager_address, controller=profile.controller.address, channel=0
        )
        assert relay_nonce is not None
        return relay_nonce

    def kinds(self, *raw: bytes) -> list[SendKind]:
        """Send transactions; return what the node made of each."""
        return [outcome.kind for outcome in self.client.send_raw_transactions(raw)]

    def receipts(self, *hashes: str) -> Any:
        """Return the receipts by hash, as the client reads them."""
        return self.client.read_chain(transaction_hashes=hashes, accounts=[], confirmations=1).receipts

    def receipt(self, transaction_hash: str) -> Any:
        return self.receipts(transaction_hash)[transaction_hash]

    def execute(self, call: RelayCall, **fields: Any) -> SignedTransaction:
        """Send the call and mine it."""
        signed = self.signed(call, **fields)
        (outcome,) = self.client.send_raw_transactions([signed.raw])
        assert outcome.kind is SendKind.ACCEPTED, outcome
        self.world.mine()
        return signed


def calldata_of(call: RelayCall) -> bytes:
    """Return the calldata of `executeRelayCall` for the call."""
    return encode_execute_relay_call(
        signature=call.signature, nonce=call.relay_nonce, validity=call.validity, payload=call.payload
    )


def new_signer(*, chain_id: int = CHAIN_ID, fee_cap_wei: int = 10**15, max_gas: int = 10**10) -> LocalSigner:
    """Return a signer of one fresh key that refuses next to nothing."""
    return LocalSigner([random_key()], chain_id=chain_id, fee_cap_wei=fee_cap_wei, max_gas=max_gas)
