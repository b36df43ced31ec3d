"""
What may be signed at all, for any caller: pure rules on one transaction, and on what its account nonce has carried.

The service's own keys keep the first two rules as well; the journal's rule needs a signer with a memory.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from signer.contracts import EXECUTE_RELAY_CALL, RELAY_CALL_HEAD
from signer.transactions import SELF_TRANSFER_GAS, PolicyViolation, UnsignedTransaction

# More than the number of raises by an eighth from 1 wei to the cap; also the most entries that the journal keeps per
# account nonce.
MOST_ON_ONE_NONCE = 256
_MOST_ACCOUNT_NONCE = 2**63 - 1
_WORD = 32


class Kind(StrEnum):
    """What a transaction does."""

    CALL = "call"
    SELF_TRANSFER = "self-transfer"
    TRANSFER = "transfer"


class Entry(NamedTuple):
    """A transaction that was signed."""

    kind: Kind
    # What was signed, fees included; and what it does, without them.
    digest: bytes
    content: bytes
    max_fee_wei: int
    # What it takes of its budget at most: gas, or wei for a transfer.
    amount: int
    signature: bytes
    transaction_hash: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The chain, wei per gas, and the units of gas of one transaction."""

    chain_id: int
    fee_cap_wei: int
    max_gas: int


def check_relayed(
    transaction: UnsignedTransaction, *, relayer: str, own: Collection[str], limits: Limits
) -> Kind:
    """
    Return whether a relayer's transaction is a relay call or a self-transfer; `own` are all addresses with a key.

    Raises:
        PolicyViolation: it is neither, is of another chain, or exceeds a limit.
    """
    _check_terms(transaction, limits)
    if not SELF_TRANSFER_GAS <= transaction.gas_limit <= limits.max_gas:
        raise PolicyViolation("gas limit above the cap, or below what any transaction takes")
    if transaction.to == relayer:
        if transaction.data or transaction.gas_limit != SELF_TRANSFER_GAS:
            raise PolicyViolation("a self-transfer carries no data and 21,000 gas")
        return Kind.SELF_TRANSFER
    if not _is_execute_relay_call(transaction.data):
        raise PolicyViolation("neither a relay call nor a self-transfer")
    if transaction.to in own:
        raise PolicyViolation("a relay call goes to a key manager, not to a relayer")
    return Kind.CALL


def check_transfer(
    transaction: UnsignedTransaction,
    *,
    value_wei: int,
    relayers: Collection[str],
    limits: Limits,
    max_value_wei: int,
) -> Kind:
    """
    Return the kind of a transfer from the treasury.

    Raises:
        PolicyViolation: another receiver, more than the most of one transfer, or fees above the cap.
    """
    _check_terms(transaction, limits)
    if transaction.to not in relayers:
        raise PolicyViolation("the treasury pays relayers alone")
    if not 0 < value_wei <= max_value_wei:
        raise PolicyViolation("more than one transfer may carry")
    if transaction.data or transaction.gas_limit != SELF_TRANSFER_GAS:
        raise PolicyViolation("a transfer carries no data and 21,000 gas")
    return Kind.TRANSFER


def _check_terms(transaction: UnsignedTransaction, limits: Limits) -> None:
    if transaction.chain_id != limits.chain_id:
        raise PolicyViolation("another chain id than the configured one")
    if transaction.account_nonce > _MOST_ACCOUNT_NONCE:
        raise PolicyViolation("no account nonce")
    tip, fee = transaction.max_priority_fee_per_gas_wei, transaction.max_fee_per_gas_wei
    if not 0 <= tip <= fee <= limits.fee_cap_wei:
        raise PolicyViolation("fees above the cap, or a tip above the fee")


def check_nonce(signed: Sequence[Entry], entry: Entry) -> None:
    """
    Refuse what would make an account nonce carry two different calls; `signed` is what was signed on it before.

    A self-transfer may always be signed: it uses up the nonce and does nothing. A call may be the first on its nonce,
    or the same call again at a higher fee. A transfer of the treasury goes to a relayer whatever its amount is, and the
    chain takes one, so it may be another one than before.

    Raises:
        PolicyViolation: the account nonce is another's, or too much was signed on it.
    """
    if len(signed) >= MOST_ON_ONE_NONCE:
        raise PolicyViolation("too many transactions are signed on this account nonce")
    if entry.kind != Kind.CALL or not signed:
        return
    calls = [earlier for earlier in signed if earlier.kind == Kind.CALL]
    if any(call.content != entry.content for call in calls) or not calls:
        raise PolicyViolation("the account nonce was used for something else", refusal="nonce-used")
    if entry.max_fee_wei <= max(call.max_fee_wei for call in calls):
        raise PolicyViolation("the same call was signed at this fee or a higher one", refusal="nonce-used")


def _is_execute_relay_call(calldata: bytes) -> bool:
    """Return whether the calldata is `executeRelayCall`, encoded as the service does it and in no other way."""
    if not calldata.startswith(EXECUTE_RELAY_CALL + RELAY_CALL_HEAD):
        return False
    head = 4 + 4 * _WORD
    after_signature = head + _WORD + _length_at(calldata, head)
    payload = int.from_bytes(calldata[4 + 3 * _WORD : head], "big") + 4
    return payload == after_signature and len(calldata) == payload + _WORD + _length_at(calldata, payload)


def _length_at(calldata: bytes, at: int) -> int:
    """Return how many bytes follow the length at this place, padded to whole words."""
    length = int.from_bytes(calldata[at : at + _WORD], "big")
    return length + -length % _WORD
