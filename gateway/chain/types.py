"""
The chain's values: the chain itself, the responses of nodes, and the client's interface.

Addresses are EIP-55 text, hashes lower-case 0x-hex.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from typing import Protocol

from gateway.chain.errors import NodeUnavailable
from gateway.chain.fees import FeePolicy
from gateway.chain.l1_fees import L1Prices
from signer.deployments import Deployment

_WEI_PER_COIN = 10**18

# The maximum gas of a read, because callers choose the contract.
READ_GAS = 500_000


@dataclass(frozen=True, slots=True)
class Finality:
    """
    When a block is final: once the chain has `blocks` blocks counted from this one, itself included.

    With `by_tag`, the node's block tag `finalized` decides instead, if the node supports it.
    """

    blocks: int = 64
    by_tag: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """
    Seconds that depend on how fast a chain makes blocks.

    Bytes that are not mined are sent again after `resend_seconds` and replaced after `replace_seconds`. A call that
    expires within `min_validity_seconds` is refused. The relay worker looks for a new block every `track_seconds`.
    """

    resend_seconds: float
    replace_seconds: float
    min_validity_seconds: int
    track_seconds: float


@dataclass(frozen=True, slots=True)
class Funding:
    """
    How relayers are funded, in wei: one with less than `below_wei` is topped up to `to_wei`.

    `daily_wei` limits the sum of all relayers in 24 hours. The service only watches `treasury_address` if it does not
    have the key.
    """

    below_wei: int
    to_wei: int
    daily_wei: int
    treasury_address: str = ""


@dataclass(frozen=True, slots=True)
class LossBudget:
    """The most wei that the service may lose on a chain in an hour: for all users together, and for each."""

    per_hour_wei: int
    user_per_hour_wei: int


@dataclass(frozen=True, slots=True)
class PriceLimits:
    """
    How far the price of a credit on a further chain is trusted.

    It is used for `days` days, and while its value differs from that of the price at home by at most `margin_percent`.
    """

    days: int
    margin_percent: int


@dataclass(frozen=True, slots=True)
class Chain:
    """
    One chain: its nodes, the limits of gas prices, and when a block is confirmed and when final.

    `family` decides which costs a transaction has besides gas. `first_credit_wei` is the chain's first price of a
    credit; later ones are rows.

    At most `node_places` threads of a process wait for nodes. Credits and account nonces change only if `quorum` nodes
    report the same. A node leaves the rotation if its newest block is older than `max_head_age_seconds` (0: any age)
    or more than `max_lag_blocks` behind the others. A transaction is confirmed once the chain has `confirmations`
    blocks counted from its own, itself included. `explorer_url` is empty without a block explorer.
    """

    id: int
    node_urls: tuple[str, ...] = field(repr=False)
    node_timeout_seconds: float
    node_places: int
    quorum: int
    max_head_age_seconds: int
    max_lag_blocks: int
    block_seconds: float
    confirmations: int
    fees: FeePolicy
    pace: Pace
    funding: Funding
    losses: LossBudget
    first_credit_wei: int
    explorer_url: str = ""
    currency: str = "LYX"
    finality: Finality = Finality()
    name: str = ""
    family: str = "ethereum"
    takes_calls: bool = True
    # The most credits that a call may cost; 0 for no limit.
    max_call_credits: int = 0
    # None at home, whose coin the price of a credit follows by definition.
    price_limits: PriceLimits | None = None
    # Whether calls may be paid with credits that were neither bought nor part of a subscription.
    spends_given_credits: bool = True

    @property
    def whole_block_seconds(self) -> int:
        """The seconds between two blocks, rounded up, for the times of blocks and `Retry-After`."""
        return math.ceil(self.block_seconds)

    @property
    def has_extra_fees(self) -> bool:
        """Whether the chain charges more than gas for a transaction: a fee for L1, and its operator's."""
        return self.family == "op-stack"

    def transaction_page(self, transaction_hash: str) -> str:
        """Return the explorer's page of a transaction; empty without an explorer."""
        return f"{self.explorer_url}/tx/{transaction_hash}" if self.explorer_url else ""

    def amount(self, wei: int, *, places: int) -> str:
        """Return the amount in whole coins as text, rounded to this many decimal places."""
        return f"{Decimal(wei) / _WEI_PER_COIN:,.{places}f} {self.currency}"


@dataclass(frozen=True, slots=True)
class Head:
    """
    The newest block: number, unix time in seconds, base fee, hash, and gas limit (0 if unknown).

    `l1` has L1's prices on a chain of the OP stack; None elsewhere.
    """

    number: int
    timestamp: int
    base_fee_wei: int
    block_hash: str = ""
    gas_limit: int = 0
    l1: L1Prices | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ProfileState:
    """
    A profile, and whether it accepts one controller's signature.

    `profile_code` is empty if there is no contract; `owner` is None if the
    contract does not return `owner()`; `permissions` are LSP-6 bits.
    """

    profile_code: bytes
    owner: str | None
    permissions: int
    signature_valid: bool


@dataclass(frozen=True, slots=True)
class KeyManagerState:
    """A key manager's code, and the profile that its `target()` returns (None if it does not respond)."""

    code: bytes
    target: str | None


@dataclass(frozen=True, slots=True)
class RelayQuery:
    """
    One relay call to read the state for, and the transaction to simulate.

    `sender` would send `calldata` to the key manager with `gas_limit`. If that is None, the node
    estimates the lowest sufficient limit, up to `gas_cap`. With `compares`, a limit below the cap is also compared with
    the cap, because a contract may catch that an inner call ran out of gas. Without calldata, nothing is simulated:
    contracts are only read, with limits on gas and on the size of each response.
    """

    profile: str
    key_manager: str
    controller: str
    channel: int
    sender: str
    calldata: bytes
    gas_limit: int | None
    gas_cap: int
    compares: bool = True


@dataclass(frozen=True, slots=True)
class Trial:
    """
    The simulation of a relay call at the newest block; `Trial(None)` for a query without calldata.

    `gas_limit` is the simulated one, or the estimate; None if the estimate reverted. `gas_used` is None if the node did
    not report it, and so is `most_gas_used`, which is the gas before the refund. `revert` is the revert data; None if
    the call succeeded.

    `agrees` is whether the call had the same logs and used the same gas at the cap; None if nothing was compared, as
    for an estimate. `gas_used_at_cap` is the gas used at the cap.
    """

    gas_limit: int | None
    gas_used: int | None = None
    revert: bytes | None = None
    logs: tuple[tuple[str, str, str], ...] = ()
    agrees: bool | None = None
    gas_used_at_cap: int | None = None
    most_gas_used: int | None = None
    # The contracts returned more data than the service reads; the other fields are unknown.
    is_oversized: bool = False

    def compared_with(self, at_cap: "Trial | None") -> "Trial":
        """Return this trial compared with the one at the cap; unchanged if the node cannot simulate."""
        if at_cap is None or at_cap.gas_used is None:
            return self
        agrees = None
        if self.gas_used is not None:
            agrees = (self.revert, self.logs, self.gas_used) == (at_cap.revert, at_cap.logs, at_cap.gas_used)
        return replace(self, agrees=agrees, gas_used_at_cap=at_cap.gas_used)


@dataclass(frozen=True, slots=True)
class RelayState:
    """
    The state that the preflight of one relay call needs, read in one round trip.

    Code names are those that staff vet, empty if there is no contract. `relay_nonce` is the controller's
    next nonce in that channel, channel bits included; None if the key manager does not return `getNonce`.
    The newest block and the tip may be a few seconds old. The tip, in wei per gas, is the median by gas
    of recent blocks; 0 if those blocks were nearly empty.
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
    # The name of the node that reported all this.
    node: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """
    The result and the cost of a mined transaction.

    `extra_fee_wei` is what the chain has charged the sender besides gas; None if the receipt does not name it, and on
    chains where gas is all.
    """

    transaction_hash: str
    block_number: int
    block_hash: str
    succeeded: bool
    gas_used: int
    effective_gas_price_wei: int
    extra_fee_wei: int | None = None

    @property
    def cost_wei(self) -> int:
        """All that the transaction has cost its sender, apart from its value."""
        return self.gas_used * self.effective_gas_price_wei + (self.extra_fee_wei or 0)


@dataclass(frozen=True, slots=True)
class AccountState:
    """
    An account's next nonce at the newest block and at the newest confirmed one.

    A block is confirmed once the chain has `confirmations` blocks counted from it, itself included. With several nodes,
    a quorum has reached these values, and a quorum reports no nonce above `highest_nonce`.
    """

    latest_nonce: int
    confirmed_nonce: int
    balance_wei: int
    highest_nonce: int = -1
    # Whether a quorum reports code at the address, which means that the key has signed a delegation (EIP-7702).
    has_code: bool = False

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
    if it was not requested. `undecided` transactions count as neither mined nor absent for now, because the nodes
    disagree about them or gave no usable response. A height, a final block or an account is missing for the same
    reasons.
    """

    head: Head
    receipts: dict[str, Receipt]
    accounts: dict[str, AccountState]
    block_hashes: dict[int, str] = field(default_factory=dict)
    final: BlockId | None = None
    undecided: frozenset[str] = frozenset()

    def account(self, address: str) -> AccountState:
        """
        Return a requested account.

        Raises:
            NodeUnavailable: no node, or too few, gave a usable response about it.
        """
        if address not in self.accounts:
            raise NodeUnavailable("The chain nodes returned nothing about an account.")
        return self.accounts[address]


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """
    A node's host, and why it is out of the rotation; `fault` is empty while it is in it.

    The age of the newest block is computed from the last check; None before the first check. `failed_share` is the part
    of the last requests and checks that failed, from 0 to 1.
    """

    name: str
    fault: str
    head_age_seconds: float | None = None
    failed_share: float = 0.0


class SendKind(Enum):
    """The outcome of sending raw bytes to the nodes."""

    ACCEPTED = "accepted"
    """The node holds the transaction, now or already before."""
    NONCE_TOO_LOW = "nonce-too-low"
    """The account nonce is used up by a mined transaction, perhaps this very one."""
    UNDERPRICED = "underpriced"
    """The fees are too low for this node; a replacement with higher fees may pass."""
    REFUSED = "refused"
    """These bytes can never be mined as they are."""
    LATER = "later"
    """A node responded, and none accepts these bytes for now; send the same bytes again, with backoff."""
    UNREACHABLE = "unreachable"
    """No node responded; send the same bytes again."""


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """The outcome of one raw transaction, with the node's own message."""

    kind: SendKind
    message: str
    # The lowest tip in wei per gas that the node takes, as far as the outcome shows it: 0 if it took the transaction's.
    least_tip_wei: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ExternalExecution:
    """A mined transaction in which a key manager verified a controller's call. Any account may have sent it."""

    transaction_hash: str
    sender: str
    to: str | None
    calldata: bytes
    selector: bytes
    block_number: int


@dataclass(frozen=True, slots=True)
class SentTransaction:
    """A mined transaction of one of our accounts: its place, content and cost."""

    transaction_hash: str
    sender: str
    account_nonce: int
    to: str | None
    calldata: bytes
    receipt: Receipt


class ChainClient(Protocol):
    """
    All requests of the service to chain nodes.

    Addresses are EIP-55 text, hashes lower-case 0x-hex, as arguments and results. Every
    method raises `NodeUnavailable` if no node gives a usable response. A contract that does
    not respond is not an error; the result is then None, empty or 0.
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
        """Return the code at the address; a best-effort read that fails fast and has no effect on the rotation."""
        ...

    def read_code(self, *, address: str) -> bytes:
        """
        Return the code at the address on which a quorum of the nodes agrees; empty without a contract.

        Raises:
            NodeUnavailable: too few nodes responded, or they disagree.
        """
        ...

    def read_key_manager(self, *, key_manager: str) -> KeyManagerState:
        """Return the key manager's code and target."""
        ...

    def read_pending_owner(self, *, profile: str) -> str | None:
        """Return the address that may accept the ownership of the profile (LSP-14); None without one."""
        ...

    def read_permissions(self, *, profile: str, controllers: Sequence[str]) -> list[int]:
        """Return the LSP-6 bits of each controller in order; 0 if the profile has none."""
        ...

    def read_data(self, *, profile: str, key: bytes) -> bytes:
        """Return the value of a data key (ERC-725Y); empty if the profile has none."""
        ...

    def read_first_deployment(self, *, profile: str) -> Deployment | None:
        """Return the call of LSP-23's factory in its event for this profile, unchecked; None if the node has none."""
        ...

    def read_view(self, *, contract: str, calldata: bytes, gas: int = READ_GAS) -> bytes:
        """Return what the contract returns at the newest block; empty if it reverts or is not a contract."""
        ...

    def read_relay_states(self, queries: Sequence[RelayQuery]) -> list[RelayState]:
        """Return the states that the preflights of these calls need, read at the newest block in one round trip."""
        ...

    def simulate_relay_call(self, *, sender: str, key_manager: str, calldata: bytes, gas_cap: int) -> int:
        """
        Return the lowest gas limit with which the newest block would execute this call.

        Raises:
            CallReverted: the call reverts, or needs more gas than `gas_cap`.
        """
        ...

    def simulate_follower(
        self, *, key_manager: str, profile: str, controller: str, payload: bytes, gas_cap: int
    ) -> int:
        """
        Return a gas limit for a relay call whose nonce is not due yet.

        Permissions and payload are checked at the newest block; nonce, signature and
        the effects of earlier calls are not. The limit is never below the call's need
        in that state.

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

        Also returns the hashes of the blocks at these heights and, with `finality`, the newest final block. With
        several nodes, the view contains only what a quorum agrees on.
        """
        ...

    def read_pending_nonces(self, *, accounts: Sequence[str]) -> dict[str, int]:
        """Return each account's next nonce after all transactions that any node knows, including its pool's."""
        ...

    def read_relay_nonce(self, *, key_manager: str, controller: str, channel: int) -> int | None:
        """Return the controller's next relay nonce, channel bits included; None if the contract returns none."""
        ...

    def read_external_executions(
        self, *, key_manager: str, controller: str, from_block: int, to_block: int
    ) -> list[ExternalExecution]:
        """Return the transactions in these blocks, both included, in which calls of the controller were verified."""
        ...

    def read_sent(self, *, senders: Sequence[str], from_block: int, to_block: int) -> list[SentTransaction]:
        """Return the transactions of these accounts in these blocks, both included, from one node."""
        ...

    def send_raw_transactions(self, raw: Sequence[bytes]) -> list[SendOutcome]:
        """
        Send signed transactions to every node, in order, and return the outcome of each.

        If no node responds, the outcome is `UNREACHABLE`; no network error is raised. Only a quorum can refuse one.
        """
        ...

    def nodes(self) -> list[NodeHealth]:
        """Return the health of every configured node, as this process has last checked it."""
        ...

    def doubt(self, names: Collection[str]) -> None:
        """Use the nodes of these names last for some seconds."""
        ...
