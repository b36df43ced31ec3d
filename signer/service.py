"""
Signs transactions that the policy allows, and records them in the journal.

For each batch the service reads the called contracts from their chain, checks and signs each transaction, and stores
all entries before it returns any signature. Batches are signed one at a time. If the caller has disconnected by then,
the batch is not signed, because the caller may drop its calls and have them signed on other account nonces.
"""

import logging
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from eth_hash.auto import keccak

from signer.chains import DAY, ServedChain, Spending
from signer.journal import Account, Journal, Slot
from signer.keys import Key, Keyring, KeyUnusable, MemoryKey
from signer.messages import KeyList, Outcome, SigningRequest
from signer.policy import Entry, Kind, check_nonce, check_relayed, check_transfer
from signer.targets import NodeUnavailable, Trust
from signer.transactions import (
    PolicyViolation,
    SignedTransaction,
    UnsignedTransaction,
    signing_digest,
    with_signature,
)

logger = logging.getLogger(__name__)


class _Checked(NamedTuple):
    """A request that passed the rules on one transaction, with its key."""

    request: SigningRequest
    key: Key
    kind: Kind

    @property
    def target(self) -> Account:
        return Account(self.request.transaction.to, self.request.transaction.chain_id)

    @property
    def slot(self) -> Slot:
        transaction = self.request.transaction
        return Slot(self.key.address, transaction.chain_id, transaction.account_nonce)

    @property
    def amount(self) -> int:
        return self.request.value_wei if self.kind == Kind.TRANSFER else self.request.transaction.gas_limit


class SigningService:
    """
    The keys behind the policies of their chains and the journal. Thread-safe.

    Each key signs on each chain. The first chain is the service's home.
    """

    def __init__(
        self,
        keys: Keyring,
        chains: Sequence[ServedChain],
        journal: Journal,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.keyring, self.journal = keys, journal
        self._chains = {chain.id: chain for chain in chains}
        self._clock = clock
        self._calling = keys.for_calls
        self._own = set(self._calling) | ({keys.treasury.address} if keys.treasury else set())
        self._lock = threading.Lock()
        # Devices are slow, so the signatures of a batch are made in parallel.
        self._threads = ThreadPoolExecutor(16, thread_name_prefix="sign")
        self.counts: Counter[str] = Counter()
        self._spending = {chain.id: Spending(chain.policy, keys) for chain in chains}
        for account, kind, signed_at, amount in journal.amounts_since(clock() - DAY):
            if account.chain_id in self._spending:
                self._spending[account.chain_id].restore(account.address, kind, amount, at=signed_at)

    @property
    def chain_ids(self) -> list[int]:
        """The ids of the chains for which this signer signs, home first."""
        return list(self._chains)

    def keys(self) -> KeyList:
        """Return the addresses for which this signer signs."""
        treasury = self.keyring.treasury
        return KeyList(
            relayers=list(self._calling),
            spare=list(self.keyring.spare),
            treasury=treasury.address if treasury else "",
        )

    def spent(self) -> dict[Account, int]:
        """Return each key's spending on each chain: gas of the last hour, wei of the last day."""
        now = self._clock()
        with self._lock:
            return {
                Account(address, chain_id): amount
                for chain_id, spending in self._spending.items()
                for address, amount in spending.spent(now=now).items()
            }

    def signed_ever(self) -> int:
        """Return the number of transactions ever signed; raises if the journal cannot be read."""
        with self._lock:
            return self.journal.count()

    def journal_bytes(self) -> int:
        """Return the size of the journal's file."""
        with self._lock:
            return self.journal.size()

    def prune(self, chain_id: int, *, days: int) -> int:
        """
        Delete entries of account nonces that are final on this chain and have no entry younger than `days`.

        These account nonces are never signed again. Return the number of deleted entries.

        Raises:
            NodeUnavailable: the node did not respond.
        """
        used, before = self._chains[chain_id].targets.used_nonces(self._own), self._clock() - days * DAY
        count = 0
        for address, below in used.items():
            account = Account(address, chain_id)
            is_done = False
            while not is_done:
                # The lock is released after each step, so that signing waits for one step at most.
                with self._lock:
                    deleted, is_done = self.journal.prune(account, below=below, signed_before=before)
                count += deleted
        return count

    def sign(
        self, requests: Sequence[SigningRequest], *, is_wanted: Callable[[], bool] = lambda: True
    ) -> list[Outcome]:
        """
        Return for each request the signed transaction, the refusal, or None while it is undecided.

        `is_wanted` is called when it is this batch's turn, and returns whether the caller still waits.
        """
        checked = [self._checked(request) for request in requests]
        trusts = self._trusts(item for item in checked if isinstance(item, _Checked))
        outcomes: list[Outcome] = [
            item if isinstance(item, PolicyViolation) else self._refusal_of_target(item, trusts)
            for item in checked
        ]
        allowed = [
            (place, item)
            for place, item in enumerate(checked)
            if isinstance(item, _Checked)
            and (item.kind != Kind.CALL or item.target in trusts)
            and outcomes[place] is None
        ]
        with self._lock:
            if is_wanted():
                for place, outcome in self._sign_allowed(allowed):
                    outcomes[place] = outcome
        for request, outcome in zip(requests, outcomes, strict=True):
            self.counts[_name(outcome)] += 1
            if isinstance(outcome, PolicyViolation):
                _log_refusal(request, outcome)
        return outcomes

    def _checked(self, request: SigningRequest) -> _Checked | PolicyViolation:
        """Apply the rules on one transaction, which need neither the node nor the journal."""
        address, transaction, value_wei = request
        treasury, chain = self.keyring.treasury, self._chains.get(transaction.chain_id)
        try:
            if chain is None:
                raise PolicyViolation("no chain with this id is configured")
            if treasury and address == treasury.address:
                kind = check_transfer(
                    transaction,
                    value_wei=value_wei,
                    relayers=self._calling,
                    limits=chain.policy.limits,
                    max_value_wei=chain.policy.transfer_wei,
                )
                return _Checked(request, treasury, kind)
            key = self._calling.get(address)
            if key is None:
                raise PolicyViolation("no key for this address")
            if value_wei:
                raise PolicyViolation("a relayer sends no value")
            kind = check_relayed(
                transaction,
                relayer=address,
                own=self._own,
                limits=chain.policy.limits,
                deploys=chain.policy.deploys,
            )
            return _Checked(request, key, kind)
        except PolicyViolation as refusal:
            return refusal

    def _trusts(self, checked: Iterable[_Checked]) -> dict[Account, Trust]:
        """Return the trust in the called contracts, without those of a chain whose node does not respond."""
        called: defaultdict[int, set[str]] = defaultdict(set)
        for item in checked:
            if item.kind == Kind.CALL:
                called[item.target.chain_id].add(item.target.address)
        trusts: dict[Account, Trust] = {}
        for chain_id, addresses in called.items():
            try:
                read = self._chains[chain_id].targets.trust_of(addresses)
            except NodeUnavailable:
                self.counts["node-away"] += 1
            else:
                trusts |= {Account(address, chain_id): trust for address, trust in read.items()}
        return trusts

    def _refusal_of_target(self, item: _Checked, trusts: dict[Account, Trust]) -> PolicyViolation | None:
        transaction = item.request.transaction
        trust = trusts.get(item.target)
        if item.kind != Kind.CALL or trust is None or trust == Trust.TRUSTED:
            return None
        if trust == Trust.NONE:
            return PolicyViolation("the called contract is not a key manager")
        if transaction.gas_limit > self._chains[transaction.chain_id].policy.max_gas_untrusted:
            return PolicyViolation("the called contract is not a key manager of trusted code")
        return None

    def _sign_allowed(self, allowed: Sequence[tuple[int, _Checked]]) -> list[tuple[int, Outcome]]:
        now = self._clock()
        outcomes: list[tuple[int, Outcome]] = []
        # The entries of this batch that are not in the journal yet.
        begun: list[tuple[int, _Checked, Entry]] = []
        for place, item in allowed:
            transaction, value_wei = item.request.transaction, item.request.value_wei
            entry = Entry(
                kind=item.kind,
                digest=signing_digest(transaction, value_wei=value_wei),
                content=_content(transaction, value_wei),
                max_fee_wei=transaction.max_fee_per_gas_wei,
                amount=item.amount,
                signature=b"",
                transaction_hash="",
            )
            if self.journal.is_pruned(item.slot):
                refusal = PolicyViolation("the account nonce was used long ago", refusal="nonce-used")
                outcomes.append((place, refusal))
                continue
            before = self.journal.signed_on(item.slot)
            before += [other for _, earlier, other in begun if earlier.slot == item.slot]
            repeated = next((other for other in before if other.digest == entry.digest), None)
            if repeated is not None:
                # A duplicate within the batch is undecided; its repeat is served from the journal.
                signature = repeated.signature
                outcomes.append((place, _signed(item, signature) if signature else None))
                continue
            try:
                check_nonce(before, entry)
                self._spend(item, before, now)
            except PolicyViolation as violation:
                outcomes.append((place, violation))
                continue
            begun.append((place, item, entry))
        return outcomes + self._sign_and_record(begun, now)

    def _spend(self, item: _Checked, before: Sequence[Entry], now: float) -> None:
        """Count only the increase over the nonce's largest earlier amount, because the chain executes one of them."""
        added = max(0, item.amount - max((entry.amount for entry in before), default=0))
        self._spending[item.slot.chain_id].spend(item.key.address, item.kind, added, now=now)

    def _sign_and_record(
        self, begun: Sequence[tuple[int, _Checked, Entry]], now: float
    ) -> list[tuple[int, Outcome]]:
        in_memory = all(isinstance(item.key, MemoryKey) for _, item, _ in begun)
        signatures = list(map(_signature, begun) if in_memory else self._threads.map(_signature, begun))
        signed = [
            (place, item, entry._replace(signature=signature))
            for (place, item, entry), signature in zip(begun, signatures, strict=True)
            if signature is not None
        ]
        results = [(place, item, entry, _signed(item, entry.signature)) for place, item, entry in signed]
        if results:
            self.journal.record(
                [
                    (item.slot, entry._replace(transaction_hash=result.transaction_hash))
                    for _, item, entry, result in results
                ],
                now=now,
            )
        return [(place, result) for place, _, _, result in results]


def _signature(begun: tuple[int, _Checked, Entry]) -> bytes | None:
    """Return the key's signature; None if its device does not respond."""
    _, item, entry = begun
    try:
        return item.key.sign(entry.digest)
    except KeyUnusable:
        return None


def _signed(item: _Checked, signature: bytes) -> SignedTransaction:
    return with_signature(item.request.transaction, signature, value_wei=item.request.value_wei)


def _content(transaction: UnsignedTransaction, value_wei: int) -> bytes:
    """Return the hash of everything but the fees and the account nonce."""
    terms = f"{transaction.chain_id} {transaction.to} {transaction.gas_limit} {value_wei} "
    return keccak(terms.encode() + transaction.data)


def _log_refusal(request: SigningRequest, refusal: PolicyViolation) -> None:
    transaction = request.transaction
    logger.warning(
        "refused (%s): %s; chain %d, from %r to %s, account nonce %d, gas limit %d",
        refusal.refusal,
        refusal,
        transaction.chain_id,
        request.address,
        transaction.to,
        transaction.account_nonce,
        transaction.gas_limit,
    )


def _name(outcome: Outcome) -> str:
    if outcome is None:
        return "undecided"
    return outcome.refusal if isinstance(outcome, PolicyViolation) else "signed"
