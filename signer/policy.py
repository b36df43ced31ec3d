"""
Rules for signing, the same for every caller: on one transaction, on the entries of its account nonce, and on a key's
spending. They read neither a clock nor a file.

Keys in the service's own process also follow the rules on one transaction; the other rules need a journal.
"""

import math
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from signer import deployments, removals
from signer.contracts import EXECUTE_RELAY_CALL, RELAY_CALL_HEAD
from signer.transactions import SELF_TRANSFER_GAS, PolicyViolation, UnsignedTransaction

# The maximum number of entries per account nonce, more than the bumps by an eighth from 1 wei to the cap.
MAX_PER_NONCE = 256
_MAX_ACCOUNT_NONCE = 2**63 - 1
_WORD = 32
_RECEIVER_DELEGATES = frozenset(bytes.fromhex(address[2:]) for address in deployments.RECEIVER_DELEGATES)
# The number of parts of a budget's window.
_PARTS = 60


class Kind(StrEnum):
    """The kind of a transaction."""

    CALL = "call"
    SELF_TRANSFER = "self-transfer"
    TRANSFER = "transfer"
    DEPLOYMENT = "deployment"


# Kinds of which an account nonce executes one transaction alone, at whatever fee.
_ONE_PER_NONCE = (Kind.CALL, Kind.DEPLOYMENT)


class Entry(NamedTuple):
    """A signed transaction in the journal."""

    kind: Kind
    # The hash with the fees, which is signed; and the hash without the fees and the account nonce.
    digest: bytes
    content: bytes
    max_fee_wei: int
    # The most that the transaction uses of its key's budget: gas, or wei for a transfer.
    amount: int
    signature: bytes
    transaction_hash: str


@dataclass(frozen=True, slots=True)
class TransactionLimits:
    """Limits of one transaction: its chain, its maximum of wei per gas, and its maximum gas."""

    chain_id: int
    fee_cap_wei: int
    max_gas: int


@dataclass(frozen=True, slots=True)
class DeploymentLimits:
    """
    What relayers may deploy through LSP-23's factory: the maximum gas of one deployment, and the implementations.

    A maximum of 0 forbids deployments. Implementations are addresses in lower case.
    """

    max_gas: int = 0
    profiles: Collection[str] = tuple(release.profile.lower() for release in deployments.RELEASES)
    key_managers: Collection[str] = tuple(release.key_manager.lower() for release in deployments.RELEASES)


NO_DEPLOYMENTS = DeploymentLimits()


def check_relayed(
    transaction: UnsignedTransaction,
    *,
    relayer: str,
    own: Collection[str],
    limits: TransactionLimits,
    deploys: DeploymentLimits,
) -> Kind:
    """
    Return the kind of a relayer's transaction: a relay call, a deployment or a self-transfer.

    `own` are all addresses with a key.

    Raises:
        PolicyViolation: the transaction is none of them, is for another chain, or exceeds a limit.
    """
    _check_terms(transaction, limits)
    if not SELF_TRANSFER_GAS <= transaction.gas_limit <= limits.max_gas:
        raise PolicyViolation("gas limit above the cap, or below 21,000")
    if transaction.to == relayer:
        if transaction.data or transaction.gas_limit != SELF_TRANSFER_GAS:
            raise PolicyViolation("a self-transfer carries no data and 21,000 gas")
        return Kind.SELF_TRANSFER
    if transaction.to in (deployments.FACTORY, removals.MULTICALL):
        _check_deployment(_deployment_in(transaction), transaction.gas_limit, deploys)
        return Kind.DEPLOYMENT
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
    limits: TransactionLimits,
    max_value_wei: int,
) -> Kind:
    """
    Return the kind of a transfer from the treasury.

    Raises:
        PolicyViolation: the receiver is not a relayer, or the value or the fees are above the maximum.
    """
    _check_terms(transaction, limits)
    if transaction.to not in relayers:
        raise PolicyViolation("the treasury pays only relayers")
    if not 0 < value_wei <= max_value_wei:
        raise PolicyViolation("value above the maximum of a transfer")
    if transaction.data or transaction.gas_limit != SELF_TRANSFER_GAS:
        raise PolicyViolation("a transfer carries no data and 21,000 gas")
    return Kind.TRANSFER


def _deployment_in(transaction: UnsignedTransaction) -> deployments.Deployment:
    if transaction.to == removals.MULTICALL:
        copy = removals.decode(transaction.data)
        if copy is None or not removals.takes_permissions_alone(copy):
            raise PolicyViolation("the multicall does nothing but copy a profile and take permissions there")
        return copy.deployment
    deployment = deployments.decode(transaction.data)
    if deployment is None:
        raise PolicyViolation(
            "the factory deploys nothing but profiles with their key managers, without value"
        )
    return deployment


def _check_deployment(deployment: deployments.Deployment, gas_limit: int, limits: DeploymentLimits) -> None:
    """Allow the factory to deploy a profile of trusted code that no controller can turn into other code."""
    if gas_limit > limits.max_gas:
        raise PolicyViolation("gas limit above the cap of a deployment")
    is_trusted = (
        deployment.profile.lower() in limits.profiles
        and deployment.key_manager.lower() in limits.key_managers
        and deployment.module == deployments.MODULE
    )
    if not is_trusted:
        raise PolicyViolation("a deployment of untrusted code")
    entries = deployments.decode_entries(deployment.module_data)
    if entries is None:
        raise PolicyViolation("the data of the deployment do not decode")
    for key, value in entries:
        if key == deployments.RECEIVER_DELEGATE_KEY and value not in _RECEIVER_DELEGATES:
            raise PolicyViolation("a deployment with another receiver delegate")
        is_permission = key.startswith(deployments.PERMISSIONS_PREFIX)
        if is_permission and (
            len(value) != _WORD or int.from_bytes(value, "big") & deployments.DELEGATECALLS
        ):
            raise PolicyViolation("a deployment with a controller that may run other code as the profile")


def _check_terms(transaction: UnsignedTransaction, limits: TransactionLimits) -> None:
    if transaction.chain_id != limits.chain_id:
        raise PolicyViolation("another chain id than the configured one")
    if transaction.account_nonce > _MAX_ACCOUNT_NONCE:
        raise PolicyViolation("account nonce out of range")
    tip, fee = transaction.max_priority_fee_per_gas_wei, transaction.max_fee_per_gas_wei
    if not 0 <= tip <= fee <= limits.fee_cap_wei:
        raise PolicyViolation("fees above the cap, or a tip above the fee")


def check_nonce(signed: Sequence[Entry], entry: Entry) -> None:
    """
    Refuse a second, different call on an account nonce; `signed` are the earlier entries of the nonce.

    A self-transfer may always be signed: it uses up the nonce and has no other effect. A call or a deployment must be
    the first on its nonce, or the same one at a higher fee. A transfer of the treasury may differ from earlier ones on
    its nonce, because it always goes to a relayer and the chain executes only one of them.

    Raises:
        PolicyViolation: the account nonce belongs to another transaction, or has too many entries.
    """
    if len(signed) >= MAX_PER_NONCE:
        raise PolicyViolation("too many transactions on this account nonce")
    if entry.kind not in _ONE_PER_NONCE or not signed:
        return
    calls = [earlier for earlier in signed if earlier.kind in _ONE_PER_NONCE]
    if any(call.content != entry.content for call in calls) or not calls:
        raise PolicyViolation("the account nonce was used for something else", refusal="nonce-used")
    if entry.max_fee_wei <= max(call.max_fee_wei for call in calls):
        raise PolicyViolation("the same call was signed at this fee or a higher one", refusal="nonce-used")


def _is_execute_relay_call(calldata: bytes) -> bool:
    """Return whether the calldata is `executeRelayCall`, encoded exactly as the service does it."""
    if not calldata.startswith(EXECUTE_RELAY_CALL + RELAY_CALL_HEAD):
        return False
    head = 4 + 4 * _WORD
    after_signature = head + _WORD + _length_at(calldata, head)
    payload = int.from_bytes(calldata[4 + 3 * _WORD : head], "big") + 4
    return payload == after_signature and len(calldata) == payload + _WORD + _length_at(calldata, payload)


def _length_at(calldata: bytes, at: int) -> int:
    """Return the length of the data after the length word at this position, padded to whole words."""
    length = int.from_bytes(calldata[at : at + _WORD], "big")
    return length + -length % _WORD


class Budget:
    """
    The amount that a key has spent within a moving window: gas of calls, or wei of transfers.

    Counts in sixtieths of the window; an amount counts for the window and at most one sixtieth longer.
    """

    def __init__(self, *, seconds: float) -> None:
        self._part_seconds = seconds / _PARTS
        # The number of each part of the window with spending, and the amount.
        self._parts: deque[tuple[int, int]] = deque()
        self._spent = 0

    def spend(self, amount: int, *, now: float) -> None:
        """Count the amount."""
        part = math.floor(now / self._part_seconds)
        if self._parts and self._parts[-1][0] >= part:
            number, before = self._parts.pop()
            self._parts.append((number, before + amount))
        else:
            self._parts.append((part, amount))
        self._spent += amount

    def spent(self, *, now: float) -> int:
        """Return the amount spent within the window."""
        oldest = math.floor(now / self._part_seconds) - _PARTS
        while self._parts and self._parts[0][0] < oldest:
            self._spent -= self._parts.popleft()[1]
        return self._spent
