"""The fake node's transactions: decoding of raw bytes, and which of them the pool takes."""

from dataclasses import dataclass

import rlp
from eth_hash.auto import keccak

from gateway.chain.signatures import recover_address
from gateway.chain.types import SendKind, SendOutcome
from gateway.common.fields import checksum

BLOCK_GAS_LIMIT = 42_000_000


@dataclass(frozen=True, slots=True)
class Transaction:
    """A signed type-2 transaction as the node reads it; fees in wei per gas."""

    transaction_hash: str
    chain_id: int
    sender: str
    account_nonce: int
    tip_wei: int
    max_fee_wei: int
    gas_limit: int
    to: str
    value: int
    data: bytes


def read_transaction(raw: bytes) -> Transaction:
    """
    Return the decoded bytes.

    Raises:
        ValueError, RLPException, UnusableSignature: they are no signed type-2 transaction.
    """
    if raw[:1] != b"\x02":
        raise ValueError("not a type-2 transaction")
    *fields, parity, r, s = rlp.decode(raw[1:])
    numbers = [int.from_bytes(item, "big") for item in fields[:5]]
    signature = r.rjust(32, b"\0") + s.rjust(32, b"\0") + bytes([27 + int.from_bytes(parity, "big")])
    sender = recover_address(keccak(b"\x02" + rlp.encode(fields)), signature)
    chain_id, account_nonce, tip_wei, max_fee_wei, gas_limit = numbers
    return Transaction(
        transaction_hash="0x" + keccak(raw).hex(),
        chain_id=chain_id,
        sender=sender,
        account_nonce=account_nonce,
        tip_wei=tip_wei,
        max_fee_wei=max_fee_wei,
        gas_limit=gas_limit,
        to=checksum("0x" + fields[5].hex()),
        value=int.from_bytes(fields[6], "big"),
        data=fields[7],
    )


class Pool:
    """Pending transactions, at most one per sender and account nonce."""

    def __init__(self) -> None:
        self._pending: dict[tuple[str, int], Transaction] = {}

    def offer(
        self, transaction: Transaction, *, chain_id: int, next_nonce: int, balance_wei: int, base_fee_wei: int
    ) -> SendOutcome:
        """Take the transaction or refuse it, in the words of anvil and geth."""
        place = (transaction.sender, transaction.account_nonce)
        held = self._pending.get(place)
        if held == transaction:
            return SendOutcome(SendKind.ACCEPTED, "transaction already imported")
        if transaction.chain_id != chain_id:
            return SendOutcome(SendKind.REFUSED, "invalid chain id for signer")
        if transaction.account_nonce < next_nonce:
            return SendOutcome(SendKind.NONCE_TOO_LOW, "nonce too low")
        if transaction.gas_limit > BLOCK_GAS_LIMIT:
            return SendOutcome(SendKind.REFUSED, "exceeds block gas limit")
        if transaction.max_fee_wei < base_fee_wei:
            return SendOutcome(SendKind.UNDERPRICED, "max fee per gas less than block base fee")
        if transaction.value + transaction.gas_limit * transaction.max_fee_wei > balance_wei:
            return SendOutcome(SendKind.REFUSED, "Insufficient funds for gas * price + value")
        if held is not None and not _replaces(transaction, held):
            return SendOutcome(SendKind.UNDERPRICED, "replacement transaction underpriced")
        self._pending[place] = transaction
        return SendOutcome(SendKind.ACCEPTED, "")

    def put_back(self, transaction: Transaction) -> None:
        """Hold a transaction again whose block was taken back."""
        self._pending[(transaction.sender, transaction.account_nonce)] = transaction

    def take_next(self, nonces: dict[str, int], *, base_fee_wei: int) -> Transaction | None:
        """Remove and return a transaction that is due at these account nonces and pays the base fee."""
        for place, transaction in self._pending.items():
            sender, nonce = place
            if nonce == nonces.get(sender, 0) and transaction.max_fee_wei >= base_fee_wei:
                del self._pending[place]
                return transaction
        return None

    def forget(self, nonces: dict[str, int] | None = None) -> None:
        """Drop everything, or with `nonces` only those with used nonces."""
        self._pending = {
            place: held
            for place, held in self._pending.items()
            if nonces is not None and place[1] >= nonces.get(place[0], 0)
        }

    def next_nonce(self, sender: str, mined: int) -> int:
        """Return the sender's next account nonce after what waits without a gap."""
        while (sender, mined) in self._pending:
            mined += 1
        return mined

    @property
    def transactions(self) -> list[Transaction]:
        """What waits, by sender and account nonce."""
        return [self._pending[place] for place in sorted(self._pending)]


def _replaces(new: Transaction, old: Transaction) -> bool:
    return 10 * new.max_fee_wei >= 11 * old.max_fee_wei and 10 * new.tip_wei >= 11 * old.tip_wei
