"""
The chain's values: the chain itself, what a node answers, and the client's interface.

Addresses are EIP-55 text, hashes lower-case 0x-hex.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Protocol

from gateway.chain.fees import FeePolicy

_WEI_PER_COIN = 10**18


@dataclass(frozen=True, slots=True)
class Finality:
    """
    When a block is final: with `blocks` blocks from its own on, its own included.

    With `by_tag` a block is final that the node calls so (its tag `finalized`), where the node knows the tag.
    """

    blocks: int = 64
    by_tag: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """
    One chain: its nodes, what gas may cost there, and when a block is confirmed and when final.

    At most `node_places` threads of a process wait for nodes. Money and account nonces move when `quorum` nodes
    say the same. A node whose newest block is older than
    `max_head_age_seconds` (0: any age) or more than `max_lag_blocks` behind the others is not asked.
    A transaction is confirmed with `confirmations` blocks from its own on, its own included.
    `explorer_url` is empty where no block explorer is configured.
    """

    id: int
    node_urls: tuple[str, ...]
    node_timeout_seconds: float
    node_places: int
    quorum: int
    max_head_age_seconds: int
    max_lag_blocks: int
    block_seconds: int
    confirmations: int
    fees: FeePolicy
    explorer_url: str = ""
    currency: str = "LYX"
    finality: Finality = Finality()

    def transaction_page(self, transaction_hash: str) -> str:
        """Return the explorer's page of a transaction; empty without an explorer."""
        return f"{self.explorer_url}/tx/{transaction_hash}" if self.explorer_url else ""

    def amount(self, wei: int, *, places: int) -> str:
        """Return the amount in whole coins as people read it, rounded to so many decimal places."""
        return f"{Decimal(wei) / _WEI_PER_COIN:,.{places}f} {self.currency}"


@dataclass(frozen=True, slots=True)
class Head:
    """The newest block: its number, its unix time in seconds, its base fee and its hash."""

    number: int
    timestamp: int
    base_fee_wei: int
    block_hash: str = ""


@dataclass(frozen=True, slots=True)
class ProfileState:
    """
    A profile, and whether it accepts one signature by one controller.

    `profile_code` is empty if there is no contract; `owner` is None if the
    contract does not answer `owner()`; `permissions` are LSP-6 bits.
    """

    profile_code: bytes
    owner: str | None
    permissions: int
    signature_valid: bool


@dataclass(frozen=True, slots=True)
class KeyManagerState:
    """A key manager's code and the profile it says it controls (None if it does not answer)."""

    code: bytes
    target: str | None


@dataclass(frozen=True, slots=True)
class RelayQuery:
    """
    What to read for one relay call, and the transaction to try.

    `sender` would send `calldata` to the key manager with `gas_limit`; with None the node is
    asked for the least limit that suffices, up to `gas_cap`.
    """

    profile: str
    key_manager: str
    controller: str
    channel: int
    sender: str
    calldata: bytes
    gas_limit: int | None
    gas_cap: int


@dataclass(frozen=True, slots=True)
class Trial:
    """
    How the newest block would execute a relay call.

    `gas_limit` is the one that was tried, or the estimate; None where an estimate reverted. `gas_used` is
    None where the node did not say. `revert` is what the call reverted with; None if it succeeded.
    """

    gas_limit: int | None
    gas_used: int | None = None
    revert: bytes | None = None


@dataclass(frozen=True, slots=True)
class RelayState:
    """
    Everything that the preflight of one relay call needs, read in one round trip.

    Codes go by the names they are vetted by, empty where there is no contract. `relay_nonce` is the
    next one of the controller in that channel, channel bits included; None if the key manager does
    not answer `getNonce`. The newest block and the tip may be a few seconds old. The tip, in wei per gas,
    is what half of the gas in recent blocks paid; 0 where those were hardly used.
    """

    profile_code_name: str
    key_manager_code_name: str
    owner: str | None
    target: str | None
    permissions: int
    relay_nonce: int | None
    head: Head
    market_tip_wei: int
    trial: Trial


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a mined transaction did and cost."""

    transaction_hash: str
    block_number: int
    block_hash: str
    succeeded: bool
    gas_used: int
    effective_gas_price_wei: int


@dataclass(frozen=True, slots=True)
class AccountState:
    """
    An account's next nonce at the newest block and at the newest confirmed one.

    A block is confirmed once the chain has `confirmations` blocks from it on, itself included. Where nodes
    differ, the quorum has seen all of this; it has not seen the nonce go beyond `highest_nonce`.
    """

    latest_nonce: int
    confirmed_nonce: int
    balance_wei: int
    highest_nonce: int = -1

    def __post_init__(self) -> None:
        if self.highest_nonce < self.latest_nonce:
            object.__setattr__(self, "highest_nonce", self.latest_nonce)


@dataclass(frozen=True, slots=True)
class BlockId:
    """A block by its number and its hash."""

    number: int
    block_hash: str


@dataclass(frozen=True, slots=True)
class ChainView:
    """
    The newest block, the receipts that exist and the requested accounts.

    `block_hashes` has the requested heights that the chain has reached; `final` is the newest final block, None
    where nobody asked for it. About `undecided` transactions too few nodes say the same: they are neither mined
    nor absent for now. A height or a final block about which too few say the same is missing.
    """

    head: Head
    receipts: dict[str, Receipt]
    accounts: dict[str, AccountState]
    block_hashes: dict[int, str] = field(default_factory=dict)
    final: BlockId | None = None
    undecided: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """
    A node by its host, and why it is not asked at present; `fault` is empty where it is.

    The age of the newest block is that of the last check; None before the first.
    """

    name: str
    fault: str
    head_age_seconds: float | None = None


class SendKind(Enum):
    """What happened to raw bytes that were handed to the node."""

    ACCEPTED = "accepted"
    """The node holds the transaction, now or already before."""
    NONCE_TOO_LOW = "nonce-too-low"
    """The account nonce is used up by a mined transaction, perhaps this very one."""
    UNDERPRICED = "underpriced"
    """The fees are too low for this node; a replacement with higher fees may pass."""
    REFUSED = "refused"
    """These bytes can never be mined as they are."""
    UNREACHABLE = "unreachable"
    """No node answered, or none that rejects these bytes for good; send the same ones again."""


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """What the node answered to one raw transaction, with its own words in `message`."""

    kind: SendKind
    message: str


@dataclass(frozen=True, slots=True)
class ExternalExecution:
    """A mined transaction in which a key manager verified a controller's call; anybody may have sent it."""

    transaction_hash: str
    sender: str
    to: str | None
    calldata: bytes
    selector: bytes
    block_number: int


@dataclass(frozen=True, slots=True)
class SentTransaction:
    """A mined transaction of one of our accounts: where it is, what it carried and cost."""

    transaction_hash: str
    sender: str
    account_nonce: int
    to: str | None
    calldata: bytes
    receipt: Receipt


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

    def probe_code(self, *, address: str) -> bytes:
        """Return the code at the address if a node says it at once; no answer says nothing about the nodes."""
        ...

    def read_key_manager(self, *, key_manager: str) -> KeyManagerState:
        """Return the key manager's code and target."""
        ...

    def read_permissions(self, *, profile: str, controllers: Sequence[str]) -> list[int]:
        """Return the LSP-6 bits of each controller in order; 0 where the profile has none."""
        ...

    def read_data(self, *, profile: str, key: bytes) -> bytes:
        """Return the value of a data key (ERC-725Y); empty where the profile has none."""
        ...

    def read_relay_states(self, queries: Sequence[RelayQuery]) -> list[RelayState]:
        """Return everything that the preflights of these calls need, read at the newest block in one round trip."""
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
        self,
        *,
        transaction_hashes: Sequence[str],
        accounts: Sequence[str],
        confirmations: int,
        heights: Sequence[int] = (),
        finality: Finality | None = None,
    ) -> ChainView:
        """
        Return the newest block, and these transactions and accounts as of that block or a later one.

        Also the hashes of the blocks at these heights, and with `finality` the newest final block. Where there
        are several nodes, this is what the quorum of them says.
        """
        ...

    def read_pending_nonces(self, *, accounts: Sequence[str]) -> dict[str, int]:
        """Return each account's next nonce after all transactions that any node knows, those in its pool included."""
        ...

    def read_relay_nonce(self, *, key_manager: str, controller: str, channel: int) -> int | None:
        """Return the controller's next relay nonce, channel bits included; None if the contract returns none."""
        ...

    def read_external_executions(
        self, *, key_manager: str, controller: str, from_block: int, to_block: int
    ) -> list[ExternalExecution]:
        """Return the transactions, both blocks included, in which calls of the controller were verified."""
        ...

    def read_sent(self, *, senders: Sequence[str], from_block: int, to_block: int) -> list[SentTransaction]:
        """Return what these accounts have sent in these blocks, both included, as one node has them."""
        ...

    def send_raw_transactions(self, raw: Sequence[bytes]) -> list[SendOutcome]:
        """
        Send signed transactions to every node in order and return what they answered to each.

        A node that is away is `UNREACHABLE`, so this raises no network errors. Only a quorum refuses one.
        """
        ...

    def nodes(self) -> list[NodeHealth]:
        """Return every configured node, as far as this process has checked it."""
        ...
