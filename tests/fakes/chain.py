"""
A chain in memory behind the seam of `gateway.chain.client`.

The suite of `tests/gateway/chain` holds it to what a real node with LUKSO's contracts returns.
"""

import copy
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eth_abi.abi import encode
from rlp.exceptions import RLPException

from gateway.chain.contracts import OWNER
from gateway.chain.errors import CallReverted, NodeUnavailable, UnrecoverableSignature, UnusableSignature
from gateway.chain.signatures import recover_address
from gateway.chain.types import (
    AccountState,
    BlockId,
    ChainView,
    ExternalExecution,
    Finality,
    Head,
    KeyManagerState,
    NodeHealth,
    ProfileState,
    RelayQuery,
    RelayState,
    SendKind,
    SendOutcome,
    SentTransaction,
    Trial,
)
from signer import deployments, removals
from signer.contracts import code_name
from signer.deployments import Deployment
from tests.fakes import lukso
from tests.fakes.pool import read_transaction
from tests.fakes.world import FakeWorld

# What anvil calls finalized: two epochs of 32 blocks below the newest.
_TAGGED_BLOCKS = 65


class FakeChain(FakeWorld):
    """
    The world and the `ChainClient` over it.

    `request_counts` counts the requests by method name; `sent` keeps every raw transaction offered.
    """

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.request_counts: Counter[str] = Counter()
        self.sent: list[bytes] = []
        self.data: dict[tuple[str, bytes], bytes] = {}
        self._is_away = False

    @contextmanager
    def away(self) -> Iterator[None]:
        """Let no node respond inside the block."""
        self._is_away = True
        try:
            yield
        finally:
            self._is_away = False

    def chain_id(self) -> int:
        self._ask("chain_id")
        return self._chain_id

    def head(self) -> Head:
        self._ask("head")
        return self._newest

    def read_profile(self, *, profile: str, controller: str, digest: bytes, signature: bytes) -> ProfileState:
        self._ask("read_profile")
        contract = self._state.profiles.get(profile)
        if contract is None:
            return ProfileState(self._code(profile), None, 0, signature_valid=False)
        try:
            signer = recover_address(digest, signature)
        except UnrecoverableSignature:
            signer = ""
        return ProfileState(
            contract.code, contract.owner, contract.permissions_of(controller), contract.accepts(signer)
        )

    def probe_code(self, *, address: str) -> bytes:
        self._ask("probe_code")
        return self._code(address)

    def read_code(self, *, address: str) -> bytes:
        self._ask("read_code")
        return self._code(address)

    def read_key_manager(self, *, key_manager: str) -> KeyManagerState:
        self._ask("read_key_manager")
        contract = self._state.key_managers.get(key_manager)
        return KeyManagerState(self._code(key_manager), contract.target if contract else None)

    def read_pending_owner(self, *, profile: str) -> str | None:
        self._ask("read_pending_owner")
        contract = self._state.profiles.get(profile)
        return contract.pending_owner if contract else None

    def read_permissions(self, *, profile: str, controllers: Sequence[str]) -> list[int]:
        self._ask("read_permissions")
        return [self._permissions(profile, controller) for controller in controllers]

    def read_data(self, *, profile: str, key: bytes) -> bytes:
        self._ask("read_data")
        return self.data.get((profile, key), b"")

    def read_first_deployment(self, *, profile: str) -> Deployment | None:
        self._ask("read_first_deployment")
        sent = [one for block in self._blocks for one in block.transactions if one.to == deployments.FACTORY]
        for deployment in filter(None, (deployments.decode(one.data) for one in sent)):
            if deployments.addresses_of(deployment).profile == profile:
                return deployment
        return None

    def read_view(self, *, contract: str, calldata: bytes, gas: int = 500_000) -> bytes:
        self._ask("read_view")
        if contract == deployments.FACTORY:
            deployment = deployments.decode(calldata)
            wanted = deployment and deployments.addresses_of(deployment)
            if not wanted or wanted.profile in self._state.profiles:
                return b""
            return b"".join(bytes.fromhex(address[2:]).rjust(32, b"\0") for address in wanted)
        if contract == removals.MULTICALL:
            return self._read_copy_with_removal(calldata)
        if contract in self._state.profiles and calldata == OWNER:
            return bytes.fromhex(self._state.profiles[contract].owner[2:]).rjust(32, b"\0")
        return b""

    def read_relay_states(self, queries: Sequence[RelayQuery]) -> list[RelayState]:
        self._ask("read_relay_states")
        return [self._relay_state(query) for query in queries]

    def simulate_relay_call(self, *, sender: str, key_manager: str, calldata: bytes, gas_cap: int) -> int:
        self._ask("simulate_relay_call")
        if key_manager == deployments.FACTORY:
            if not self.read_view(contract=key_manager, calldata=calldata) or gas_cap < self.gas.deployment:
                raise CallReverted(b"")
            return self.gas.deployment
        if key_manager == removals.MULTICALL:
            if not self._read_copy_with_removal(calldata) or gas_cap < self.gas.copy_with_removal:
                raise CallReverted(b"")
            return self.gas.copy_with_removal
        with self._lock:
            reverted, signer, call = self._run(copy.deepcopy(self._state), key_manager, calldata)
            if reverted is not None or call is None or gas_cap < self.gas.estimate:
                raise CallReverted(reverted or b"")
            return self.gas.estimate + self._first_use(key_manager, signer, call)

    def simulate_follower(
        self, *, key_manager: str, profile: str, controller: str, payload: bytes, gas_cap: int
    ) -> int:
        self._ask("simulate_follower")
        with self._lock:
            account = self._state.profiles.get(profile)
            if account is None:
                raise CallReverted(b"")
            refusal = lukso.permission_refusal(
                profile=account, controller=controller, payload=payload, is_relayed=False
            )
            reverted = refusal or self._execute(copy.deepcopy(self._state), profile, payload)
            if reverted is not None or gas_cap < self.gas.estimate:
                raise CallReverted(reverted or b"")
            return self.gas.estimate + self.gas.first_of_channel + self.gas.follower_margin

    def read_chain(
        self,
        *,
        transaction_hashes: Sequence[str],
        accounts: Sequence[str],
        confirmations: int,
        heights: Sequence[int] = (),
        finality: Finality | None = None,
    ) -> ChainView:
        self._ask("read_chain")
        with self._lock:
            receipts = {
                transaction_hash: receipt
                for block in self._blocks
                for transaction_hash, receipt in block.receipts.items()
            }
            confirmed = self._blocks[max(0, len(self._blocks) - confirmations)].nonces
            return ChainView(
                head=self._newest,
                receipts={
                    transaction_hash: receipts[transaction_hash]
                    for transaction_hash in transaction_hashes
                    if transaction_hash in receipts
                },
                accounts={
                    address: AccountState(
                        self._state.account(address).nonce,
                        confirmed.get(address, 0),
                        self._state.account(address).balance_wei,
                        has_code=address in self.delegated,
                    )
                    for address in accounts
                },
                block_hashes={
                    height: self._blocks[height].block_hash
                    for height in heights
                    if height < len(self._blocks)
                },
                final=None if finality is None else self._final_block(finality),
            )

    def read_pending_nonces(self, *, accounts: Sequence[str]) -> dict[str, int]:
        self._ask("read_pending_nonces")
        return {
            account: self._pool.next_nonce(account, self._state.account(account).nonce)
            for account in accounts
        }

    def read_relay_nonce(self, *, key_manager: str, controller: str, channel: int) -> int | None:
        self._ask("read_relay_nonce")
        contract = self._state.key_managers.get(key_manager)
        return None if contract is None else contract.relay_nonce(controller, channel)

    def read_external_executions(
        self, *, key_manager: str, controller: str, from_block: int, to_block: int
    ) -> list[ExternalExecution]:
        self._ask("read_external_executions")
        return [
            execution
            for block in self._blocks[from_block : to_block + 1]
            for manager, signer, execution in block.executions
            if (manager, signer) == (key_manager, controller)
        ]

    def read_sent(self, *, senders: Sequence[str], from_block: int, to_block: int) -> list[SentTransaction]:
        self._ask("read_sent")
        return [
            SentTransaction(
                one.transaction_hash,
                one.sender,
                one.account_nonce,
                one.to,
                one.data,
                block.receipts[one.transaction_hash],
            )
            for block in self._blocks[from_block : to_block + 1]
            for one in block.transactions
            if one.sender in senders
        ]

    def send_raw_transactions(self, raw: Sequence[bytes]) -> list[SendOutcome]:
        self.request_counts["send_raw_transactions"] += 1
        with self._lock:
            return [self._send(one) for one in raw]

    def nodes(self) -> list[NodeHealth]:
        return [NodeHealth("fake", "no response" if self._is_away else "", 0.0)]

    def doubt(self, names: Collection[str]) -> None:
        raise AssertionError(f"a single node cannot be contradicted: {names}")

    def _read_copy_with_removal(self, calldata: bytes) -> bytes:
        """Return what Multicall3 would return now; empty if it reverts."""
        with self._lock:
            is_copied = self._copy_with_removal(copy.deepcopy(self._state), calldata)
        wanted = removals.decode(calldata)
        if wanted is None or not is_copied:
            return b""
        deployed = encode(["address", "address"], deployments.addresses_of(wanted.deployment))
        return bytes(encode(["(bool,bytes)[]"], [[(True, deployed), (True, encode(["bytes"], [b""]))]]))

    def _relay_state(self, query: RelayQuery) -> RelayState:
        account = self._state.profiles.get(query.profile)
        manager = self._state.key_managers.get(query.key_manager)
        profile_code, key_manager_code = self._code(query.profile), self._code(query.key_manager)
        return RelayState(
            profile_code_name=code_name(profile_code) if profile_code else "",
            key_manager_code_name=code_name(key_manager_code) if key_manager_code else "",
            owner=account.owner if account else None,
            target=manager.target if manager else None,
            permissions=self._permissions(query.profile, query.controller),
            relay_nonce=manager.relay_nonce(query.controller, query.channel) if manager else None,
            head=self._newest,
            market_tip_wei=0,
            trial=self._try(query),
        )

    def _try(self, query: RelayQuery) -> Trial:
        if not query.calldata:
            return Trial(gas_limit=None)
        with self._lock:
            if query.key_manager in self._state.profiles:
                return self._try_part(query)
            reverted, signer, call = self._run(copy.deepcopy(self._state), query.key_manager, query.calldata)
            if reverted is not None or call is None:
                return Trial(query.gas_limit, revert=reverted or b"")
            first_use = self._first_use(query.key_manager, signer, call)
            estimate = self.gas.estimate + first_use
            if (query.gas_cap if query.gas_limit is None else query.gas_limit) < estimate:
                return Trial(query.gas_limit, revert=b"")
            used = self.gas.used + first_use
            if query.gas_limit is None:
                return Trial(estimate, gas_used_at_cap=used)
            if query.gas_limit >= query.gas_cap or not query.compares:
                return Trial(query.gas_limit, gas_used=used)
            return Trial(query.gas_limit, gas_used=used, agrees=True, gas_used_at_cap=used)

    def _try_part(self, query: RelayQuery) -> Trial:
        """Execute what a key manager would have the profile do, as for a call that is not signed yet."""
        reverted = self._execute(copy.deepcopy(self._state), query.key_manager, query.calldata)
        if reverted is None and (query.gas_limit or query.gas_cap) >= self.gas.estimate:
            used = self.gas.used
            return Trial(query.gas_limit, gas_used=used, agrees=True, gas_used_at_cap=used)
        return Trial(query.gas_limit, revert=reverted or b"")

    def _final_block(self, finality: Finality) -> BlockId:
        blocks = _TAGGED_BLOCKS if finality.by_tag else finality.blocks
        block = self._blocks[max(0, len(self._blocks) - blocks)]
        return BlockId(block.head.number, block.block_hash)

    def _ask(self, method: str) -> None:
        self.request_counts[method] += 1
        if self._is_away:
            raise NodeUnavailable("No chain node responds. Repeat the request.", retry_after=2)

    def _permissions(self, profile: str, controller: str) -> int:
        contract = self._state.profiles.get(profile)
        return contract.permissions_of(controller) if contract else 0

    def _send(self, raw: bytes) -> SendOutcome:
        if self._is_away:
            return SendOutcome(SendKind.UNREACHABLE, "No chain node responds. Repeat the request.")
        self.sent.append(raw)
        try:
            transaction = read_transaction(raw)
        except (ValueError, RLPException, UnusableSignature):
            return SendOutcome(SendKind.REFUSED, "Failed to decode transaction")
        account = self._state.account(transaction.sender)
        return self._pool.offer(
            transaction,
            chain_id=self._chain_id,
            next_nonce=account.nonce,
            balance_wei=account.balance_wei,
            base_fee_wei=self.base_fee_wei,
        )
