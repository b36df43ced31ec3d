"""The one seam to the chain: the few node calls that the service makes, and the client that makes them."""

import os
from collections.abc import Sequence
from functools import cache
from typing import Protocol

from django.conf import settings

from gateway.chain.jsonrpc import JsonRpcChainClient
from gateway.chain.states import (
    AccountState,
    ChainView,
    ExternalExecution,
    Head,
    KeyManagerState,
    ProfileState,
    Receipt,
    RelayState,
    SendKind,
    SendOutcome,
)

__all__ = [
    "AccountState",
    "ChainClient",
    "ChainView",
    "ExternalExecution",
    "Head",
    "KeyManagerState",
    "ProfileState",
    "Receipt",
    "RelayState",
    "SendKind",
    "SendOutcome",
    "get_chain_client",
    "set_chain_client",
]


class ChainClient(Protocol):
    """
    What the service asks a chain node.

    Addresses go in and come out as EIP-55 text, hashes as lower-case 0x-hex. Every
    method raises `NodeUnavailable` if no node gives a usable answer. If a contract
    refuses to answer, that is a value (None, empty, 0) and not an error.
    """

    def chain_id(self) -> int:
        """Return the chain id that the node reports."""
        ...

    def head(self) -> Head:
        """Return the newest block."""
        ...

    def read_profile(self, *, profile: str, controller: str, digest: bytes, signature: bytes) -> ProfileState:
        """Return the profile and whether it accepts the signature over the 32-byte digest (ERC-1271)."""
        ...

    def read_key_manager(self, *, key_manager: str) -> KeyManagerState:
        """Return the key manager's code and target."""
        ...

    def read_permissions(self, *, profile: str, controllers: Sequence[str]) -> list[int]:
        """Return the LSP-6 bits of each controller in order; 0 where the profile has none."""
        ...

    def read_relay_state(
        self, *, profile: str, key_manager: str, controller: str, channel: int
    ) -> RelayState:
        """Return everything that a preflight needs, read at the newest block in one round trip."""
        ...

    def simulate_relay_call(self, *, sender: str, key_manager: str, calldata: bytes, gas_cap: int) -> int:
        """
        Return the least gas limit with which the newest block would execute this call.

        Raises:
            CallReverted: it reverts, or needs more gas than `gas_cap`.
        """
        ...

    def simulate_follower(
        self, *, key_manager: str, profile: str, controller: str, payload: bytes, gas_cap: int
    ) -> int:
        """
        Return a gas limit for a relay call whose nonce is not due yet.

        Permissions and payload are checked at the newest block; nonce, signature and
        the effects of earlier calls are not. The limit is never below what the call
        needs in that state.

        Raises:
            CallReverted: the controller may not make the call, or the payload reverts.
        """
        ...

    def read_chain(
        self, *, transaction_hashes: Sequence[str], accounts: Sequence[str], confirmations: int
    ) -> ChainView:
        """Return the newest block, and these transactions and accounts as of that block or a later one."""
        ...

    def read_relay_nonce(self, *, key_manager: str, controller: str, channel: int) -> int | None:
        """Return the controller's next relay nonce, channel bits included; None if the contract returns none."""
        ...

    def read_external_executions(
        self, *, key_manager: str, controller: str, from_block: int, to_block: int
    ) -> list[ExternalExecution]:
        """Return the transactions, both blocks included, in which calls of the controller were verified."""
        ...

    def send_raw_transactions(self, raw: Sequence[bytes]) -> list[SendOutcome]:
        """
        Hand signed transactions to the node in order and return its verdict on each.

        If the node is away, that is a verdict too, so this raises no network errors.
        """
        ...


_installed: ChainClient | None = None


@cache
def _node_client() -> JsonRpcChainClient:
    return JsonRpcChainClient(settings.CHAIN_RPC_URLS, timeout_seconds=settings.CHAIN_RPC_TIMEOUT_SECONDS)


# A forked worker must not use its parent's connections.
os.register_at_fork(after_in_child=_node_client.cache_clear)


def set_chain_client(client: ChainClient | None) -> None:
    """Install another client for this process, or with None a new one from the settings."""
    global _installed  # noqa: PLW0603
    _installed = client
    _node_client.cache_clear()


def get_chain_client() -> ChainClient:
    """Return the process's client: the installed one, else one over `settings.CHAIN_RPC_URLS`, made once."""
    return _node_client() if _installed is None else _installed
