"""
Compares a signer's journal with the chain.

For each account nonce, the journal may have one call, its replacements at higher fees, and the self-transfer that
cancels it. The chain must use every account nonce of the journal, with one of these transactions. A call is signed on a
second account nonce only after its first was cancelled by a self-transfer.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lab.chaos.verifier import Chain, Mined

Slot = tuple[str, int]


class Signed(NamedTuple):
    """One signature; `content` is a digest of the transaction without its fees and account nonce."""

    address: str
    account_nonce: int
    kind: str
    content: bytes
    transaction_hash: str

    @property
    def slot(self) -> Slot:
        """Its relayer and account nonce."""
        return self.address.lower(), self.account_nonce


@dataclass
class JournalResult:
    """The differences found; empty if all is well."""

    account_nonces: int = 0
    signatures: int = 0
    # Calls that were cancelled after signing and submitted again.
    signed_anew: int = 0
    wrong: list[str] = field(default_factory=list)


def read_journal(path: Path) -> list[Signed]:
    """Return the signatures of relayers in a journal; its signer must have exited."""
    with closing(sqlite3.connect(path, timeout=0)) as file:
        rows = file.execute("SELECT address, account_nonce, kind, content, transaction_hash FROM signed")
        return [signed for signed in map(Signed._make, rows) if signed.kind != "transfer"]


def compare_journal(signed: Iterable[Signed], chain: Chain) -> JournalResult:
    """Return all differences between the signatures and the chain."""
    by_slot: dict[Slot, list[Signed]] = defaultdict(list)
    for one in signed:
        by_slot[one.slot].append(one)
    result = JournalResult(len(by_slot), sum(map(len, by_slot.values())))
    for slot, entries in by_slot.items():
        result.wrong += _wrong_on(slot, entries, chain.by_nonce.get(slot))
    unsigned = [slot for slot in chain.by_nonce if slot not in by_slot]
    result.wrong += [f"{_name(slot)} is on the chain and not in the journal" for slot in unsigned]
    result.signed_anew = _judge_calls(by_slot, chain, result)
    return result


def _wrong_on(slot: Slot, entries: Iterable[Signed], mined: Mined | None) -> Iterable[str]:
    calls = {one.content for one in entries if one.kind == "call"}
    if len(calls) > 1:
        yield f"{len(calls)} calls are signed on {_name(slot)}"
    if mined is None:
        yield f"{_name(slot)} was signed and is not on the chain"
    elif mined.transaction_hash not in {one.transaction_hash for one in entries}:
        yield f"{_name(slot)}: the chain has {mined.transaction_hash}, which is not in the journal"


def _judge_calls(by_slot: Mapping[Slot, list[Signed]], chain: Chain, result: JournalResult) -> int:
    """Report calls wrongly signed on several account nonces; return the number of correct ones."""
    slots_of: dict[bytes, set[Slot]] = defaultdict(set)
    for slot, entries in by_slot.items():
        for one in entries:
            if one.kind == "call":
                slots_of[one.content].add(slot)
    signed_anew = 0
    for content, slots in slots_of.items():
        used_up = {slot for slot in slots if _hash_on(slot, chain) in chain.others}
        if len(slots - used_up) > 1:
            result.wrong.append(f"call {content.hex()[:12]} is signed on {sorted(map(_name, slots))}")
        signed_anew += len(slots) - 1 if len(slots - used_up) <= 1 else 0
    return signed_anew


def _hash_on(slot: Slot, chain: Chain) -> str | None:
    mined = chain.by_nonce.get(slot)
    return mined.transaction_hash if mined else None


def _name(slot: Slot) -> str:
    return f"account nonce {slot[1]} of {slot[0]}"
