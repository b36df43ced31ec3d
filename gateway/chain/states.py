"""What the chain answered. Addresses are EIP-55 text, hashes lower-case 0x-hex, amounts wei."""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Head:
    """The newest block: its number, its unix time in seconds and its base fee."""

    number: int
    timestamp: int
    base_fee_wei: int


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
class RelayState:
    """
    Everything that the preflight of one relay call needs, read in one round trip.

    `relay_nonce` is the next one of the controller in that channel, channel bits
    included; None if the key manager does not answer `getNonce`.
    """

    profile_code: bytes
    key_manager_code: bytes
    owner: str | None
    target: str | None
    permissions: int
    relay_nonce: int | None
    head: Head
    tip_wei: int


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

    A block is confirmed once the chain has `confirmations` blocks from it on, itself included.
    """

    latest_nonce: int
    confirmed_nonce: int
    balance_wei: int


@dataclass(frozen=True, slots=True)
class ChainView:
    """The newest block, the receipts that exist and the accounts that were asked for."""

    head: Head
    receipts: dict[str, Receipt]
    accounts: dict[str, AccountState]


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
    """The node's verdict on one raw transaction, with its own words in `message`."""

    kind: SendKind
    message: str


@dataclass(frozen=True, slots=True)
class ExternalExecution:
    """A mined transaction in which a key manager verified a controller's call, whoever sent it."""

    transaction_hash: str
    sender: str
    to: str | None
    calldata: bytes
    selector: bytes
    block_number: int
