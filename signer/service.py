"""
Sign what the policy allows, at most once for each purpose, and remember it.

A batch is one step: its targets are read from the chain, then each transaction is checked and signed, and all of them
are in the journal before any signature is returned. Batches come one after the other; one whose caller has hung up
meanwhile is not signed, because its calls may be given up and signed on other account nonces.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from eth_hash.auto import keccak

from signer.budget import Budget
from signer.journal import Account, Journal, Slot
from signer.keys import Key, Keyring, KeyUnusable, MemoryKey
from signer.messages import KeyList, Outcome, SigningRequest
from signer.policy import Entry, Kind, Limits, check_nonce, check_relayed, check_transfer
from signer.targets import NodeAway, Targets, Trust
from signer.transactions import (
    PolicyViolation,
    SignedTransaction,
    UnsignedTransaction,
    signing_digest,
    with_signature,
)

_HOUR, _DAY = 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Policy:
    """The limits of one transaction, of an hour's gas for each relayer, and of the treasury's wei."""

    limits: Limits
    gas_per_hour: int
    # Gas of a call of code that is not trusted; with 0 no such call is signed.
    max_gas_untrusted: int
    transfer_wei: int
    transfers_per_day_wei: int


class _Wanted(NamedTuple):
    """A request that may be signed unless its account nonce is taken."""

    request: SigningRequest
    key: Key
    kind: Kind

    @property
    def slot(self) -> Slot:
        transaction = self.request.transaction
        return Slot(self.key.address, transaction.chain_id, transaction.account_nonce)

    @property
    def amount(self) -> int:
        return self.request.value_wei if self.kind == Kind.TRANSFER else self.request.transaction.gas_limit


class SigningService:
    """The keys and all that guards them. Thread-safe."""

    def __init__(
        self,
        keys: Keyring,
        policy: Policy,
        journal: Journal,
        targets: Targets,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys, self._policy, self._journal, self._targets = keys, policy, journal, targets
        self._clock = clock
        self._calling = keys.for_calls
        self._own = set(self._calling) | ({keys.treasury.address} if keys.treasury else set())
        self._lock = threading.Lock()
        # Devices take their time, so the signatures of a batch are made side by side.
        self._threads = ThreadPoolExecutor(16, thread_name_prefix="sign")
        self.counts: Counter[str] = Counter()
        self._budgets = {address: Budget(seconds=_HOUR) for address in self._calling}
        if keys.treasury:
            self._budgets[keys.treasury.address] = Budget(seconds=_DAY)
        for address, signed_at, amount in journal.amounts_since(clock() - _DAY):
            if address in self._budgets:
                self._budgets[address].spend(amount, now=signed_at)

    def keys(self) -> KeyList:
        """Return the addresses that it signs for."""
        treasury = self._keys.treasury
        return KeyList(
            relayers=list(self._calling),
            spare=list(self._keys.spare),
            treasury=treasury.address if treasury else "",
        )

    def spent(self) -> dict[str, int]:
        """Return what each key has spent of its budget: gas of the last hour, wei of the last day."""
        now = self._clock()
        with self._lock:
            return {address: budget.spent(now=now) for address, budget in self._budgets.items()}

    def signed_ever(self) -> int:
        """Return how many transactions the journal has; fails where it cannot be read."""
        with self._lock:
            return self._journal.count()

    def journal_bytes(self) -> int:
        """Return how large the journal's file is."""
        with self._lock:
            return self._journal.size()

    def prune(self, *, days: int) -> int:
        """
        Forget account nonces that the chain has used for good, and on which nothing was signed for so many days.

        Nothing is signed on them again. Return how many entries are gone.

        Raises:
            NodeAway: nobody says what is used.
        """
        used, before = self._targets.used_nonces(self._own), self._clock() - days * _DAY
        gone = 0
        for address, below in used.items():
            account = Account(address, self._policy.limits.chain_id)
            is_done = False
            while not is_done:
                # Signing waits for one step at most.
                with self._lock:
                    forgotten, is_done = self._journal.forget(account, below=below, signed_before=before)
                gone += forgotten
        return gone

    def sign(
        self, requests: Sequence[SigningRequest], *, is_wanted: Callable[[], bool] = lambda: True
    ) -> list[Outcome]:
        """
        Return for each request the signed transaction, why it is refused, or None where nothing can be said now.

        `is_wanted` says whether the caller still waits, once it is this batch's turn.
        """
        wanted = [self._checked(request) for request in requests]
        trusts = self._trusts(item for item in wanted if isinstance(item, _Wanted))
        outcomes: list[Outcome] = [
            item if isinstance(item, PolicyViolation) else self._refusal_of_target(item, trusts)
            for item in wanted
        ]
        allowed = [
            (place, item)
            for place, item in enumerate(wanted)
            if isinstance(item, _Wanted)
            and (item.kind != Kind.CALL or item.request.transaction.to in trusts)
            and outcomes[place] is None
        ]
        with self._lock:
            if is_wanted():
                for place, outcome in self._sign_allowed(allowed):
                    outcomes[place] = outcome
        for outcome in outcomes:
            self.counts[_name(outcome)] += 1
        return outcomes

    def _checked(self, request: SigningRequest) -> _Wanted | PolicyViolation:
        """Return what the rules on a single transaction say, which ask nobody."""
        address, transaction, value_wei = request
        treasury = self._keys.treasury
        try:
            if treasury and address == treasury.address:
                kind = check_transfer(
                    transaction,
                    value_wei=value_wei,
                    relayers=self._calling,
                    limits=self._policy.limits,
                    max_value_wei=self._policy.transfer_wei,
                )
                return _Wanted(request, treasury, kind)
            key = self._calling.get(address)
            if key is None:
                raise PolicyViolation("no key for this address")
            if value_wei:
                raise PolicyViolation("a relayer sends no value")
            kind = check_relayed(transaction, relayer=address, own=self._own, limits=self._policy.limits)
            return _Wanted(request, key, kind)
        except PolicyViolation as refusal:
            return refusal

    def _trusts(self, wanted: Iterable[_Wanted]) -> dict[str, Trust]:
        """Return what the chain says of the called contracts; nothing where the node is away."""
        addresses = {item.request.transaction.to for item in wanted if item.kind == Kind.CALL}
        with suppress(NodeAway):
            return self._targets.trust_of(addresses)
        self.counts["node-away"] += 1
        return {}

    def _refusal_of_target(self, item: _Wanted, trusts: dict[str, Trust]) -> PolicyViolation | None:
        transaction = item.request.transaction
        trust = trusts.get(transaction.to)
        if item.kind != Kind.CALL or trust is None or trust == Trust.TRUSTED:
            return None
        if trust == Trust.NONE:
            return PolicyViolation("the called contract is no key manager")
        if transaction.gas_limit > self._policy.max_gas_untrusted:
            return PolicyViolation("the called contract is no key manager of trusted code")
        return None

    def _sign_allowed(self, allowed: Sequence[tuple[int, _Wanted]]) -> list[tuple[int, Outcome]]:
        now = self._clock()
        outcomes: list[tuple[int, Outcome]] = []
        # What this batch is about to sign, which the journal does not know yet.
        begun: list[tuple[int, _Wanted, Entry]] = []
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
            if self._journal.has_forgotten(item.slot):
                forgotten = PolicyViolation("the account nonce was used long ago", refusal="nonce-used")
                outcomes.append((place, forgotten))
                continue
            before = self._journal.signed_on(item.slot)
            before += [other for _, wanted, other in begun if wanted.slot == item.slot]
            repeated = next((other for other in before if other.digest == entry.digest), None)
            if repeated is not None:
                # One that is twice in the batch is answered the second time it is asked for.
                signature = repeated.signature
                outcomes.append((place, _signed(item, signature) if signature else None))
                continue
            try:
                check_nonce(before, entry)
                self._spend(item, before, now)
            except PolicyViolation as refusal:
                outcomes.append((place, refusal))
                continue
            begun.append((place, item, entry))
        return outcomes + self._sign_and_record(begun, now)

    def _spend(self, item: _Wanted, before: Sequence[Entry], now: float) -> None:
        """Count what the transaction adds to what its account nonce may spend already: the chain takes one of them."""
        added = max(0, item.amount - max((entry.amount for entry in before), default=0))
        budget = self._budgets[item.key.address]
        limit = self._policy.gas_per_hour
        if item.kind == Kind.TRANSFER:
            limit = self._policy.transfers_per_day_wei
        elif item.kind == Kind.SELF_TRANSFER:
            # Without them a relayer that has used its hour up would be stuck behind a nonce that is not used.
            limit += limit // 10
        if added and budget.spent(now=now) + added > limit:
            raise PolicyViolation("what this key may spend for now is used up", refusal="used-up")
        budget.spend(added, now=now)

    def _sign_and_record(
        self, begun: Sequence[tuple[int, _Wanted, Entry]], now: float
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
            self._journal.record(
                [
                    (item.slot, entry._replace(transaction_hash=result.transaction_hash))
                    for _, item, entry, result in results
                ],
                now=now,
            )
        return [(place, result) for place, _, _, result in results]


def _signature(begun: tuple[int, _Wanted, Entry]) -> bytes | None:
    """Return the key's signature; None where its device does not answer."""
    _, item, entry = begun
    try:
        return item.key.sign(entry.digest)
    except KeyUnusable:
        return None


def _signed(item: _Wanted, signature: bytes) -> SignedTransaction:
    return with_signature(item.request.transaction, signature, value_wei=item.request.value_wei)


def _content(transaction: UnsignedTransaction, value_wei: int) -> bytes:
    """Return what names the transaction's effect: everything but its fees and its account nonce."""
    terms = f"{transaction.chain_id} {transaction.to} {transaction.gas_limit} {value_wei} "
    return keccak(terms.encode() + transaction.data)


def _name(outcome: Outcome) -> str:
    if outcome is None:
        return "undecided"
    return outcome.refusal if isinstance(outcome, PolicyViolation) else "signed"
