"""
The clients of the chains, over JSON-RPC. All access to nodes goes through `get_chain_client()`, the current chain's.

Each method that requests and relay calls wait for sends one batch, built here, by `views` or by `relay_states`.
All other methods use web3.py (`web3_reads`). "latest" is given explicitly, because the nodes' defaults differ.

A contract may return nonsense; its value is then None, empty or 0. The node itself must respond correctly: each `Call`
parses its response, any other response is that node's fault, and the next node gets the request.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

from gateway.chain import contracts, first_deployments, l1_reads, lsp6, node_errors, responses
from gateway.chain.config import chains, get_chain, home, on_chain
from gateway.chain.errors import (
    RETRY_AFTER_SECONDS,
    CallReverted,
    NodeUnavailable,
    no_node_responds,
    result_too_large,
)
from gateway.chain.fees import follower_gas
from gateway.chain.node import CHAIN_ID, NEWEST_BLOCK, Node, Result
from gateway.chain.node_checks import NodeChecks
from gateway.chain.nodes import ANY_CHAIN, CHECK_SECONDS, NodeLimits, Nodes
from gateway.chain.quorum import agreed_outcome, agreed_view
from gateway.chain.relay_states import RelayStateReader
from gateway.chain.rpc import Call, OversizedError, RpcError
from gateway.chain.types import (
    READ_GAS,
    ChainClient,
    ChainView,
    Finality,
    Head,
    KeyManagerState,
    NodeHealth,
    ProfileState,
    RelayQuery,
    RelayState,
    SendKind,
    SendOutcome,
)
from gateway.chain.views import view_of
from gateway.chain.web3_reads import Web3Reads
from signer.deployments import Deployment

_LATEST, _PENDING = "latest", "pending"
# How old the newest block and the tip of a relay call may be, if blocks take longer than this.
_PRICE_SECONDS = 3
_SENDS_PER_BATCH = 100
_PROBE_SECONDS = 0.5
_ZERO_ADDRESS = "0x0000000000000000000000000000000000000000"


class JsonRpcChainClient(Web3Reads):
    """A `ChainClient` over the nodes of a list of URLs. Safe to share between threads."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        timeout_seconds: float,
        check_seconds: float = CHECK_SECONDS,
        price_seconds: float = 0.0,
        limits: NodeLimits = ANY_CHAIN,
        quorum: int | None = None,
        places: int = 8,
        with_l1: bool = False,
    ) -> None:
        """
        `quorum` defaults to a majority of the nodes; at most `places` threads wait for the nodes.

        `with_l1` is whether the chain belongs to the OP stack, so that L1's prices are read with each newest block.
        """
        self.pool = Nodes(
            urls, timeout_seconds=timeout_seconds, check_seconds=check_seconds, limits=limits, places=places
        )
        super().__init__(self.pool, with_l1=with_l1)
        self._quorum = quorum or len(urls) // 2 + 1
        self._with_l1 = with_l1
        self._relay_states = RelayStateReader(self.pool, price_seconds=price_seconds, with_l1=with_l1)

    def chain_id(self) -> int:
        (chain_id,) = self._read(CHAIN_ID)
        return int(chain_id)

    def head(self) -> Head:
        return l1_reads.head(self.pool.batch(l1_reads.head_calls(with_l1=self._with_l1), checked=True))

    def probe_code(self, *, address: str) -> bytes:
        (code,) = self.pool.probe([_code(address)], timeout_seconds=_PROBE_SECONDS)
        return bytes(code)

    def read_code(self, *, address: str) -> bytes:
        by_node = self._quorum_of(lambda node: node.batch([_code(address)], checked=True))
        [(code, count)] = Counter(bytes(code) for (code,) in by_node).most_common(1)
        if count < self._quorum:
            raise NodeUnavailable(
                f"The chain nodes disagree about the code at {address}.", retry_after=RETRY_AFTER_SECONDS
            )
        return code

    def read_profile(self, *, profile: str, controller: str, digest: bytes, signature: bytes) -> ProfileState:
        code, owner, permissions, accepted = self._read(
            _code(profile),
            _call(profile, contracts.OWNER),
            _permissions(profile, controller),
            _call(profile, contracts.encode_is_valid_signature(digest=digest, signature=signature)),
        )
        return ProfileState(
            profile_code=code,
            owner=contracts.decode_address(owner),
            permissions=contracts.decode_permissions(permissions),
            signature_valid=contracts.is_accepted_signature(accepted),
        )

    def read_key_manager(self, *, key_manager: str) -> KeyManagerState:
        code, target = self._read(_code(key_manager), _call(key_manager, contracts.TARGET))
        return KeyManagerState(code=code, target=contracts.decode_address(target))

    def read_pending_owner(self, *, profile: str) -> str | None:
        (result,) = self._read(_call(profile, contracts.PENDING_OWNER))
        owner = contracts.decode_address(result)
        return None if owner == _ZERO_ADDRESS else owner

    def read_permissions(self, *, profile: str, controllers: Sequence[str]) -> list[int]:
        values = self._read(*(_permissions(profile, controller) for controller in controllers))
        return [contracts.decode_permissions(value) for value in values]

    def read_first_deployment(self, *, profile: str) -> Deployment | None:
        return self.pool.read(
            lambda node: first_deployments.find(
                node.batch, profile=profile, head=node.batch([NEWEST_BLOCK])[0].number
            )
        )

    def read_view(self, *, contract: str, calldata: bytes, gas: int = READ_GAS) -> bytes:
        (returned,) = self._read(_call(contract, calldata, gas=gas))
        return bytes(returned)

    def read_relay_states(self, queries: Sequence[RelayQuery]) -> list[RelayState]:
        return self._relay_states.read(queries)

    def simulate_relay_call(self, *, sender: str, key_manager: str, calldata: bytes, gas_cap: int) -> int:
        (gas,) = self._read(_estimate(sender, key_manager, calldata, gas_cap))
        return int(_unreverted(gas))

    def simulate_follower(
        self, *, key_manager: str, profile: str, controller: str, payload: bytes, gas_cap: int
    ) -> int:
        verification = contracts.encode_lsp20_verify_call(
            profile=profile, controller=controller, payload=payload
        )
        verified, verifying, executing = self._read(
            _call(key_manager, verification, responses.returned_or_error, gas=gas_cap),
            _estimate(_ZERO_ADDRESS, key_manager, verification, gas_cap),
            _estimate(key_manager, profile, payload, gas_cap),
        )
        if _unreverted(verified)[:3] != contracts.LSP20_VERIFIED:
            raise CallReverted(b"")
        return follower_gas(
            verifying_gas=_unreverted(verifying),
            executing_gas=_unreverted(executing),
            verifying_calldata=verification,
            payload=payload,
        )

    def read_chain(
        self,
        *,
        transaction_hashes: Sequence[str],
        accounts: Sequence[str],
        confirmations: int,
        heights: Sequence[int] = (),
        finality: Finality | None = None,
    ) -> ChainView:
        views = self._quorum_of(
            lambda node: view_of(
                node,
                transaction_hashes=transaction_hashes,
                accounts=accounts,
                confirmations=confirmations,
                heights=heights,
                finality=finality,
                with_l1=self._with_l1,
            )
        )
        if len(self.pool) == 1:
            return views[0]
        return agreed_view(
            views,
            transaction_hashes=transaction_hashes,
            accounts=accounts,
            heights=heights,
            needed=self._quorum,
        )

    def read_pending_nonces(self, *, accounts: Sequence[str]) -> dict[str, int]:
        calls = [
            Call("eth_getTransactionCount", [account, _PENDING], responses.quantity) for account in accounts
        ]
        by_node = self._quorum_of(lambda node: node.batch(calls, checked=True))
        # Raw transactions go to every node, and any node may have lost its pool, so the highest number counts.
        return {
            account: max(nonces) for account, nonces in zip(accounts, zip(*by_node, strict=True), strict=True)
        }

    def send_raw_transactions(self, raw: Sequence[bytes]) -> list[SendOutcome]:
        sent: list[SendOutcome] = []
        for start in range(0, len(raw), _SENDS_PER_BATCH):
            try:
                sent += self._send([_send_call(one) for one in raw[start : start + _SENDS_PER_BATCH]])
            except NodeUnavailable as error:
                # Do not send the rest: it depends on these transactions, and would wait for the same nodes.
                return sent + [SendOutcome(SendKind.UNREACHABLE, error.detail)] * (len(raw) - start)
        return sent

    def nodes(self) -> list[NodeHealth]:
        return self.pool.health()

    def doubt(self, names: Collection[str]) -> None:
        self.pool.doubt(names)

    def node_checks(self) -> NodeChecks:
        """Return a thread that checks the nodes every few seconds; it is not started yet."""
        return NodeChecks(self.pool)

    def _send(self, calls: Sequence[Call]) -> list[SendOutcome]:
        by_node = self.pool.read_each(lambda node: node.batch(calls, checked=True), enough=1)
        if not by_node:
            raise no_node_responds()
        return [agreed_outcome(outcomes, needed=self._quorum) for outcomes in zip(*by_node, strict=True)]

    def _quorum_of(self, read: Callable[[Node], Result]) -> list[Result]:
        """Return the responses of the nodes that responded; raise NodeUnavailable if they are fewer than the quorum."""
        by_node = self.pool.read_each(read, enough=self._quorum)
        if not by_node:
            raise no_node_responds()
        if len(by_node) < self._quorum:
            raise NodeUnavailable(
                f"{len(by_node)} of {len(self.pool)} chain nodes respond, and {self._quorum} must agree.",
                retry_after=RETRY_AFTER_SECONDS,
            )
        return by_node

    def _read(self, *calls: Call) -> list[Any]:
        return self.pool.batch(calls)


def _unreverted(reply: Any) -> Any:
    if isinstance(reply, OversizedError):
        raise result_too_large()
    if isinstance(reply, RpcError):
        raise CallReverted(node_errors.revert_data(reply))
    return reply


def _code(address: str) -> Call:
    return Call("eth_getCode", [address, _LATEST], responses.octets, max_bytes=responses.CODE_BYTES)


def _call(
    to: str, calldata: bytes, read: Callable[[Any], Any] = responses.returned, *, gas: int = READ_GAS
) -> Call:
    fields = {"to": to, "data": "0x" + calldata.hex(), "gas": hex(gas)}
    return Call("eth_call", [fields, _LATEST], read, node_errors.is_call_error, is_sized_by_contract=True)


def _estimate(sender: str, to: str, calldata: bytes, gas_cap: int) -> Call:
    fields = {"from": sender, "to": to, "data": "0x" + calldata.hex(), "gas": hex(gas_cap)}
    return Call(
        "eth_estimateGas",
        [fields, _LATEST],
        responses.gas_or_error,
        node_errors.is_call_error,
        is_sized_by_contract=True,
    )


def _permissions(profile: str, controller: str) -> Call:
    return _call(profile, contracts.GET_DATA + lsp6.permissions_key(controller))


def _send_call(raw: bytes) -> Call:
    return Call(
        "eth_sendRawTransaction", ["0x" + raw.hex()], node_errors.send_outcome, node_errors.is_send_error
    )


_installed: dict[int, ChainClient] = {}
_HOME = 0


@cache
def _node_client(chain_id: int) -> JsonRpcChainClient:
    with on_chain(chain_id):
        chain = get_chain()
    return JsonRpcChainClient(
        chain.node_urls,
        timeout_seconds=chain.node_timeout_seconds,
        limits=NodeLimits(chain.id, chain.max_head_age_seconds, chain.max_lag_blocks),
        quorum=chain.quorum,
        places=chain.node_places,
        price_seconds=min(chain.block_seconds, _PRICE_SECONDS),
        with_l1=chain.has_extra_fees,
    )


# A forked worker must not use its parent's connections.
os.register_at_fork(after_in_child=_node_client.cache_clear)


def node_checks() -> list[NodeChecks]:
    """Return a thread for each chain that checks its nodes every few seconds; they are not started yet."""
    return [_node_client(chain.id).node_checks() for chain in chains()]


def set_chain_client(client: ChainClient | None, *, chain_id: int = _HOME) -> None:
    """Install another client for a chain (default: home) in this process; None returns to one from the settings."""
    _installed.pop(chain_id, None)
    if client is not None:
        _installed[chain_id] = client
    _node_client.cache_clear()


def get_chain_client() -> ChainClient:
    """Return the client of the current chain: the installed one, or else one created once for its nodes."""
    chain = get_chain()
    installed = _installed.get(_HOME if chain is home() else chain.id)
    return _node_client(chain.id) if installed is None else installed
