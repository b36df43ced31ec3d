"""
The client of the chain, over JSON-RPC: `get_chain_client()` is the one seam to a node.

What a relay call waits for is one batch per method, built and read here. What is asked
rarely goes through web3.py. "latest" is given explicitly, as the nodes' defaults differ.

A contract may answer nonsense, which reads as None, empty or 0. The node itself must
answer correctly; anything else raises `NodeUnavailable`.
"""

import os
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

from gateway.chain import contracts, lsp6, node_errors, rpc
from gateway.chain.config import get_chain
from gateway.chain.errors import CallReverted, NodeUnavailable, no_answer
from gateway.chain.fees import follower_gas
from gateway.chain.nodes import ANY_CHAIN, NEWEST_BLOCK, Limits, Node, NodeChecks, Nodes
from gateway.chain.quorum import agreed_outcome, agreed_view
from gateway.chain.relay_states import READ_GAS, RelayStateReader
from gateway.chain.rpc import Call, RpcError
from gateway.chain.types import (
    ChainClient,
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
)
from gateway.chain.views import Read, is_answer, sent_by, view_of

_LATEST, _PENDING = "latest", "pending"
# How old the newest block and the tip of a relay call may be, where blocks take longer.
_PRICE_SECONDS = 3
# lsp20VerifyCall answers this and one byte of flags (LSP-20).
_VERIFIED = contracts.LSP20_VERIFY_CALL[:3]
_LOG_BLOCKS = 1_000
_SENT_TOGETHER = 100
# With all their transactions; a whole block may have megabytes.
_BLOCKS_TOGETHER = 20
_GLANCE_SECONDS = 0.5
_ZERO_ADDRESS = "0x0000000000000000000000000000000000000000"


class JsonRpcChainClient:
    """A `ChainClient` over the nodes of a list of URLs. Safe to share between threads."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        timeout_seconds: float,
        price_seconds: float = 0.0,
        limits: Limits = ANY_CHAIN,
        quorum: int | None = None,
        places: int = 8,
    ) -> None:
        """The quorum is a majority unless given; at most `places` threads wait for the nodes."""
        self._nodes = Nodes(urls, timeout_seconds=timeout_seconds, limits=limits, places=places)
        self._quorum = quorum or len(urls) // 2 + 1
        self._relay_states = RelayStateReader(self._nodes, price_seconds=price_seconds)

    def chain_id(self) -> int:
        return rpc.quantity(self._read(("eth_chainId", []))[0])

    def head(self) -> Head:
        return rpc.head_of(self._read(NEWEST_BLOCK)[0])

    def read_profile(self, *, profile: str, controller: str, digest: bytes, signature: bytes) -> ProfileState:
        code, owner, permissions, accepted = self._read(
            _code(profile),
            _call(profile, contracts.OWNER),
            _permissions(profile, controller),
            _call(profile, contracts.encode_is_valid_signature(digest=digest, signature=signature)),
        )
        return ProfileState(
            profile_code=rpc.octets(code),
            owner=contracts.decode_address(_returned(owner)),
            permissions=contracts.decode_permissions(_returned(permissions)),
            signature_valid=contracts.is_accepted_signature(_returned(accepted)),
        )

    def glance_at_code(self, *, address: str) -> bytes:
        (code,) = self._nodes.glance([_code(address)], timeout_seconds=_GLANCE_SECONDS)
        return rpc.octets(code)

    def read_key_manager(self, *, key_manager: str) -> KeyManagerState:
        code, target = self._read(_code(key_manager), _call(key_manager, contracts.TARGET))
        return KeyManagerState(code=rpc.octets(code), target=contracts.decode_address(_returned(target)))

    def read_permissions(self, *, profile: str, controllers: Sequence[str]) -> list[int]:
        replies = self._read(*(_permissions(profile, controller) for controller in controllers))
        return [contracts.decode_permissions(_returned(reply)) for reply in replies]

    def read_data(self, *, profile: str, key: bytes) -> bytes:
        (reply,) = self._read(_call(profile, contracts.GET_DATA + key))
        return contracts.decode_bytes(_returned(reply))

    def read_relay_states(self, queries: Sequence[RelayQuery]) -> list[RelayState]:
        return self._relay_states.read(queries)

    def simulate_relay_call(self, *, sender: str, key_manager: str, calldata: bytes, gas_cap: int) -> int:
        reply = self._read(_estimate(sender, key_manager, calldata, gas_cap))[0]
        return rpc.quantity(_unreverted(reply))

    def simulate_follower(
        self, *, key_manager: str, profile: str, controller: str, payload: bytes, gas_cap: int
    ) -> int:
        verification = contracts.encode_lsp20_verify_call(
            profile=profile, controller=controller, payload=payload
        )
        verified, verifying, executing = self._read(
            _call(key_manager, verification, gas=gas_cap),
            _estimate(_ZERO_ADDRESS, key_manager, verification, gas_cap),
            _estimate(key_manager, profile, payload, gas_cap),
        )
        if _returned(_unreverted(verified))[:3] != _VERIFIED:
            raise CallReverted(b"")
        return follower_gas(
            verifying_gas=rpc.quantity(_unreverted(verifying)),
            executing_gas=rpc.quantity(_unreverted(executing)),
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
        question = partial(
            view_of,
            transaction_hashes=transaction_hashes,
            accounts=accounts,
            confirmations=confirmations,
            heights=heights,
            finality=finality,
        )
        if len(self._nodes) == 1:
            return question(self._read_view)
        views = self._nodes.ask_each(lambda node: question(_reader(node)), enough=self._quorum)
        if len(views) < self._quorum:
            raise NodeUnavailable(
                f"{len(views)} of {len(self._nodes)} chain nodes answer, and {self._quorum} must agree.",
                retry_after=rpc.RETRY_AFTER_SECONDS,
            )
        return agreed_view(
            views,
            transaction_hashes=transaction_hashes,
            accounts=accounts,
            heights=heights,
            needed=self._quorum,
        )

    def read_pending_nonces(self, *, accounts: Sequence[str]) -> dict[str, int]:
        calls = [("eth_getTransactionCount", [account, _PENDING]) for account in accounts]
        answers = self._nodes.ask_each(
            lambda node: node.ask(calls, is_answer, checked=True), enough=self._quorum
        )
        if len(answers) < self._quorum:
            raise no_answer()
        # Bytes are sent to every node, and any of them may have lost its pool.
        return {
            account: max(rpc.quantities(replies))
            for account, replies in zip(accounts, zip(*answers, strict=True), strict=True)
        }

    def read_relay_nonce(self, *, key_manager: str, controller: str, channel: int) -> int | None:
        (reply,) = self._read(_nonce(key_manager, controller, channel))
        return contracts.decode_number(_returned(reply))

    def read_external_executions(
        self, *, key_manager: str, controller: str, from_block: int, to_block: int
    ) -> list[ExternalExecution]:
        from gateway.chain.events import find_external_executions  # web3.py takes a second to import

        windows = _windows(from_block, to_block)
        return find_external_executions(
            self._nodes, key_manager=key_manager, controller=controller, windows=windows
        )

    def read_sent(self, *, senders: Sequence[str], from_block: int, to_block: int) -> list[SentTransaction]:
        sent: list[SentTransaction] = []
        for first in range(from_block, to_block + 1, _BLOCKS_TOGETHER):
            blocks = range(first, min(first + _BLOCKS_TOGETHER, to_block + 1))
            sent += sent_by(self._read_view, senders=senders, blocks=blocks)
        return sent

    def send_raw_transactions(self, raw: Sequence[bytes]) -> list[SendOutcome]:
        sent: list[SendOutcome] = []
        for start in range(0, len(raw), _SENT_TOGETHER):
            calls = [
                ("eth_sendRawTransaction", ["0x" + one.hex()]) for one in raw[start : start + _SENT_TOGETHER]
            ]
            try:
                sent += self._send(calls)
            except NodeUnavailable as error:
                # The rest would wait for the same nodes, and depends on these.
                return sent + [SendOutcome(SendKind.UNREACHABLE, error.detail)] * (len(raw) - start)
        return sent

    def nodes(self) -> list[NodeHealth]:
        return self._nodes.health()

    def check_nodes(self) -> None:
        """Look at each node, and let those that are unfit leave the rotation."""
        self._nodes.check()

    def node_checks(self) -> NodeChecks:
        """Return a thread that checks the nodes every few seconds; it is not started yet."""
        return NodeChecks(self._nodes)

    def _send(self, calls: Sequence[Call]) -> list[SendOutcome]:
        if len(self._nodes) == 1:
            replies = self._nodes.batch(calls, accepts=node_errors.is_send_error, checked=True)
            return [node_errors.send_outcome(reply) for reply in replies]
        by_node = self._nodes.ask_each(
            lambda node: [
                node_errors.send_outcome(reply)
                for reply in node.ask(calls, node_errors.is_send_error, checked=True)
            ],
            enough=1,
        )
        if not by_node:
            raise no_answer()
        return [agreed_outcome(outcomes, needed=self._quorum) for outcomes in zip(*by_node, strict=True)]

    def _read_view(self, *calls: Call) -> list[Any]:
        return self._nodes.batch(calls, accepts=is_answer, checked=True)

    def _read(self, *calls: Call) -> list[Any]:
        return self._nodes.batch(calls, accepts=node_errors.is_call_error)


def _reader(node: Node) -> Read:
    return lambda *calls: node.ask(calls, is_answer, checked=True)


def _unreverted(reply: Any) -> Any:
    if isinstance(reply, RpcError):
        raise CallReverted(node_errors.revert_data(reply))
    return reply


def _windows(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Split a range of blocks into pieces that public nodes are willing to search."""
    return ((start, min(start + _LOG_BLOCKS - 1, last)) for start in range(first, last + 1, _LOG_BLOCKS))


def _code(address: str) -> Call:
    return "eth_getCode", [address, _LATEST]


def _call(to: str, calldata: bytes, *, gas: int = READ_GAS) -> Call:
    return "eth_call", [{"to": to, "data": "0x" + calldata.hex(), "gas": hex(gas)}, _LATEST]


def _estimate(sender: str, to: str, calldata: bytes, gas_cap: int) -> Call:
    fields = {"from": sender, "to": to, "data": "0x" + calldata.hex(), "gas": hex(gas_cap)}
    return "eth_estimateGas", [fields, _LATEST]


def _permissions(profile: str, controller: str) -> Call:
    return _call(profile, contracts.GET_DATA + lsp6.permissions_key(controller))


def _nonce(key_manager: str, controller: str, channel: int) -> Call:
    return _call(key_manager, contracts.encode_get_nonce(controller=controller, channel=channel))


def _returned(reply: Any) -> bytes:
    """Read what a contract returned; empty if it reverted."""
    return b"" if isinstance(reply, RpcError) else rpc.octets(reply)


_installed: ChainClient | None = None


@cache
def _node_client() -> JsonRpcChainClient:
    chain = get_chain()
    return JsonRpcChainClient(
        chain.node_urls,
        timeout_seconds=chain.node_timeout_seconds,
        limits=Limits(chain.id, chain.max_head_age_seconds, chain.max_lag_blocks),
        quorum=chain.quorum,
        places=chain.node_places,
        price_seconds=min(chain.block_seconds, _PRICE_SECONDS),
    )


# A forked worker must not use its parent's connections.
os.register_at_fork(after_in_child=_node_client.cache_clear)


def node_checks() -> NodeChecks:
    """Return a thread that checks the nodes of the settings every few seconds; it is not started yet."""
    return _node_client().node_checks()


def set_chain_client(client: ChainClient | None) -> None:
    """Install another client for this process, or with None a new one from the settings."""
    global _installed  # noqa: PLW0603
    _installed = client
    _node_client.cache_clear()


def get_chain_client() -> ChainClient:
    """Return the process's client: the installed one, else one over the nodes of `get_chain()`, made once."""
    return _node_client() if _installed is None else _installed
