"""The fake chain's world: accounts, contracts, pool and blocks, and what tests do to them."""

import copy
import secrets
import threading
import time
from dataclasses import replace

from devstack.world.canonical import MULTICALL_CODE
from gateway.chain.contracts import decode_execute_relay_call, encode_execute_relay_call
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import ExternalExecution, Head, Receipt
from gateway.common.fields import checksum
from signer import deployments, removals
from tests.fakes import lukso
from tests.fakes.lukso import KeyManagerContract, ProfileContract
from tests.fakes.pool import Pool, Transaction
from tests.fakes.profiles import Controller, Profile, random_address
from tests.fakes.state import Block, Flaky, GasTable, State

GWEI = 10**9
ETHER = 10**18


class FakeWorld:
    """A chain whose blocks come only when a test calls `mine()`. Threads may share it."""

    def __init__(self, *, chain_id: int = 4201, base_fee_wei: int = GWEI) -> None:
        self.base_fee_wei = base_fee_wei
        self.gas = GasTable()
        self.universal_profile, self.key_manager = random_address(), random_address()
        # The code at addresses without a profile or a key manager; that of implementations is random, as they are.
        self.codes = {
            removals.MULTICALL: bytes.fromhex(MULTICALL_CODE[2:]),
            self.universal_profile: secrets.token_bytes(64),
            self.key_manager: secrets.token_bytes(64),
        }
        self._chain_id = chain_id
        self._targets: dict[str, Flaky] = {}
        self.delegated: set[str] = set()
        self._pool = Pool()
        self._lock = threading.RLock()
        self._state = State()
        self._blocks: list[Block] = []
        self._append(timestamp=int(time.time()) - 1)

    def delegate(self, address: str) -> None:
        """Give the account the code of a delegation (EIP-7702)."""
        self.delegated.add(address)

    def create_profile(
        self, *controllers: Controller, balance_wei: int = ETHER, implementation: str | None = None
    ) -> Profile:
        """Make a profile and its key manager as minimal proxies; one controller with all permissions unless given."""
        people = controllers or (Controller(),)
        profile, manager = random_address(), random_address()
        with self._lock:
            self._state.profiles[profile] = ProfileContract(
                code=lukso.proxy_of(implementation or self.universal_profile),
                owner=manager,
                permissions={person.address: person.permissions for person in people},
                allowed_targets={person.address: person.allowed_targets for person in people},
            )
            self._state.key_managers[manager] = KeyManagerContract(
                lukso.proxy_of(self.key_manager), target=profile
            )
            self._state.account(profile).balance_wei = balance_wei
        return Profile(profile, manager, tuple(people))

    def create_copy(self, profile: str, key_manager: str, permissions: dict[str, int]) -> None:
        """Make a profile and its key manager at the addresses that they have on another chain."""
        with self._lock:
            self._create_copy(self._state, profile, key_manager, permissions)

    def _create_copy(self, state: State, profile: str, key_manager: str, permissions: dict[str, int]) -> None:
        state.profiles[profile] = ProfileContract(
            lukso.proxy_of(self.universal_profile), key_manager, permissions=permissions
        )
        state.key_managers[key_manager] = KeyManagerContract(lukso.proxy_of(self.key_manager), target=profile)
        state.account(profile).balance_wei = ETHER

    def deploy_stray_key_manager(self, profile_address: str) -> str:
        """Make a key manager of trusted code whose target is a profile that it does not own."""
        address = random_address()
        self._state.key_managers[address] = KeyManagerContract(
            lukso.proxy_of(self.key_manager), profile_address
        )
        return address

    def deploy_impostor(self) -> str:
        """Make one contract that imitates a profile, its key manager and its owner, and accepts everything."""
        address, code = random_address(), secrets.token_bytes(114)
        self._state.profiles[address] = ProfileContract(code, address, is_credulous=True)
        self._state.key_managers[address] = KeyManagerContract(code, target=address)
        return address

    def deploy_flaky(self) -> Flaky:
        """Make a target that fails on demand."""
        flaky = Flaky()
        self._targets[flaky.address] = flaky
        return flaky

    def fund(self, wei: int, *addresses: str) -> None:
        """Set the balance of each address."""
        with self._lock:
            for address in addresses:
                self._state.account(address).balance_wei = wei

    def balance_wei(self, address: str) -> int:
        """Return the balance of an address."""
        return self._state.account(address).balance_wei

    def set_permissions(self, profile: Profile, controller: str, permissions: int) -> None:
        """Change what a controller may do, from the next question on."""
        self._state.profiles[profile.profile_address].permissions[controller] = permissions

    def set_owner(self, profile: Profile, owner: str) -> None:
        """Hand the profile over."""
        self._state.profiles[profile.profile_address].owner = owner

    def mine(self, count: int = 1, *, seconds: int = 1) -> None:
        """Add blocks, `seconds` apart, with whatever in the pool is due and pays the base fee."""
        with self._lock:
            for _ in range(count):
                block = self._append(timestamp=self._blocks[-1].head.timestamp + seconds)
                while next_one := self._pool.take_next(self._state.nonces, base_fee_wei=self.base_fee_wei):
                    self._include(block, next_one)
                block.nonces = self._state.nonces
                self._pool.forget(block.nonces)

    def take_back(self, depth: int = 1) -> None:
        """Take back the newest blocks; their transactions wait in the pool again."""
        with self._lock:
            for _ in range(depth):
                block = self._blocks.pop()
                self._state = block.before
                for transaction in block.transactions:
                    self._pool.put_back(transaction)

    def reorganise(self, depth: int = 1) -> None:
        """Replace the newest blocks by empty ones; what they held is forgotten, by the pool as well."""
        with self._lock:
            waiting = self._pool.transactions
            self.take_back(depth)
            self._pool.forget()
            self.mine(depth)
            for transaction in waiting:
                self._pool.put_back(transaction)

    @property
    def pending(self) -> list[Transaction]:
        """What waits in the pool."""
        return self._pool.transactions

    @property
    def _newest(self) -> Head:
        return replace(self._blocks[-1].head, base_fee_wei=self.base_fee_wei)

    def _append(self, *, timestamp: int) -> Block:
        block_hash = "0x" + secrets.token_hex(32)
        head = Head(len(self._blocks), timestamp, self.base_fee_wei, block_hash)
        block = Block(head, block_hash, before=copy.deepcopy(self._state))
        block.nonces = self._state.nonces
        self._blocks.append(block)
        return block

    def _code(self, address: str) -> bytes:
        contract = self._state.profiles.get(address) or self._state.key_managers.get(address)
        return contract.code if contract else self.codes.get(address, b"")

    def _first_use(self, key_manager: str, signer: str, call: RelayCall) -> int:
        used = self._state.key_managers[key_manager].relay_nonce(signer, call.channel) != call.channel << 128
        return 0 if used else self.gas.first_of_channel

    def _include(self, block: Block, transaction: Transaction) -> None:
        """Execute a transaction in the block being made."""
        price = min(transaction.max_fee_wei, self.base_fee_wei + transaction.tip_wei)
        succeeded, gas_used = self._perform(block, transaction)
        account = self._state.account(transaction.sender)
        account.nonce += 1
        account.balance_wei -= gas_used * price
        block.transactions.append(transaction)
        block.receipts[transaction.transaction_hash] = Receipt(
            transaction.transaction_hash, block.head.number, block.block_hash, succeeded, gas_used, price
        )

    def _perform(self, block: Block, transaction: Transaction) -> tuple[bool, int]:
        if transaction.to in (deployments.FACTORY, removals.MULTICALL):
            return self._perform_deployment(transaction)
        if transaction.to not in self._state.key_managers:
            return True, self.gas.self_transfer
        if transaction.gas_limit < self.gas.needed:
            return False, transaction.gas_limit
        attempt = copy.deepcopy(self._state)
        reverted, signer, call = self._run(attempt, transaction.to, transaction.data)
        if reverted is not None or call is None:
            return False, min(self.gas.reverted, transaction.gas_limit)
        gas_used = self.gas.used + self._first_use(transaction.to, signer, call)
        self._state = attempt
        execution = ExternalExecution(
            transaction_hash=transaction.transaction_hash,
            sender=transaction.sender,
            to=transaction.to,
            calldata=transaction.data,
            selector=call.payload[:4],
            block_number=block.head.number,
        )
        block.executions.append((transaction.to, signer, execution))
        return True, gas_used

    def _perform_deployment(self, transaction: Transaction) -> tuple[bool, int]:
        attempt, calldata = copy.deepcopy(self._state), transaction.data
        is_plain = transaction.to == deployments.FACTORY
        if not (self._deploy if is_plain else self._copy_with_removal)(attempt, calldata):
            return False, transaction.gas_limit
        self._state = attempt
        return True, self.gas.deployment if is_plain else self.gas.copy_with_removal

    def _deploy(self, state: State, calldata: bytes) -> bool:
        """Deploy a profile as LSP-23's factory does; return False if it reverts, as where the profile exists."""
        deployment = deployments.decode(calldata)
        if deployment is None:
            return False
        profile, key_manager = deployments.addresses_of(deployment)
        if profile in state.profiles:
            return False
        entries = deployments.decode_entries(deployment.module_data) or []
        permissions = {
            checksum("0x" + key[-20:].hex()): int.from_bytes(value, "big")
            for key, value in entries
            if key.startswith(deployments.PERMISSIONS_PREFIX)
        }
        self._create_copy(state, profile, key_manager, permissions)
        return True

    def _copy_with_removal(self, state: State, calldata: bytes) -> bool:
        """Deploy a copy and execute its removal, as Multicall3 does; return False if it reverts."""
        wanted = removals.decode(calldata)
        if wanted is None or not self._deploy(state, deployments.encode(wanted.deployment)):
            return False
        relay_call = encode_execute_relay_call(
            signature=wanted.signature, nonce=0, validity=0, payload=removals.payload_of(wanted.removal)
        )
        key_manager = deployments.addresses_of(wanted.deployment).key_manager
        return self._run(state, key_manager, relay_call)[0] is None

    def _run(
        self, state: State, key_manager: str, calldata: bytes
    ) -> tuple[bytes | None, str, RelayCall | None]:
        """Execute `executeRelayCall` on `state`; return (revert data or None, signer, call)."""
        decoded = decode_execute_relay_call(calldata)
        manager = state.key_managers.get(key_manager)
        if decoded is None or manager is None:
            return b"", "", None
        signature, relay_nonce, validity, payload = decoded
        call = RelayCall(key_manager, payload, signature, relay_nonce, validity)
        signer = lukso.signer_of(chain_id=self._chain_id, key_manager=key_manager, call=call)
        refusal = lukso.relay_refusal(
            manager=manager, signer=signer, call=call, timestamp=self._blocks[-1].head.timestamp
        ) or lukso.permission_refusal(
            profile=state.profiles[manager.target], controller=signer, payload=payload, is_relayed=True
        )
        if refusal is not None:
            return refusal, signer, call
        manager.sequences[(signer, call.channel)] = call.sequence + 1
        return self._execute(state, manager.target, payload), signer, call

    def _execute(self, state: State, profile: str, payload: bytes) -> bytes | None:
        reverted, moved = lukso.execute(
            profile=state.profiles[profile],
            payload=payload,
            balance_wei=state.account(profile).balance_wei,
            answer=self._answer_of,
        )
        if reverted is None and moved is not None:
            to, wei = moved
            state.account(profile).balance_wei -= wei
            state.account(to).balance_wei += wei
        return reverted

    def _answer_of(self, target: str) -> bytes | None:
        flaky = self._targets.get(target)
        return flaky.answer() if flaky else None
