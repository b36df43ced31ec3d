"""
Lots: which credits each use has taken. Nothing is stored; lots are computed from the entries of one account.

The rule, version 1:

1. An entry that adds credits opens a *lot*. A lot of collected money is *paid*, every other lot is *given*.
2. A use takes given lots before paid ones, and of each kind the oldest first.
3. An entry that names an earlier one first takes that entry's lot: a clawback the lot of its own invoice, the reversal
   of an earning the earning's, an expiry the lot that expires. It takes the rest by rule 2.
4. The rest that no lot covers is *debt*, not a lot: the next credits pay it, the oldest use first.
5. A charge that is reversed returns to the lots that it took. Reinstated money returns what its clawbacks took, the
   newest clawback first: what they took from other lots, then what they took from its own.
6. Credits that return to a lot whose reversal took other lots are taken by that reversal, which returns those lots.
7. If only a part returns, debt returns first, then lots in the reverse order of rule 2.

The balance is therefore the sum of the remaining credits of all lots, less the debt; only one of the two is not zero.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from credits.models import EntrySource

RULE_VERSION = 1
# The sources of collected money.
PAID_SOURCES = frozenset({EntrySource.SUBSCRIBED_PAYOUT, EntrySource.CREDIT_PURCHASE})
EXPIRY = EntrySource.CREDIT_EXPIRY
_CHARGE_REVERSED = "reversal:"
_EARNING_REVERSED = "reversed-"
_CLAWBACK, _INVOICE, _EXPIRY = "stripe:clawback:", "stripe:invoice:", "expiry:"


def clawback_key(*, invoice_id: str, number: int) -> str:
    """Return the key of the number-th clawback of an invoice."""
    return f"{_CLAWBACK}{invoice_id}:{number}"


class Posting(NamedTuple):
    """The columns of an entry from which lots are computed."""

    entry_id: int
    key: str
    source: str
    amount: int


@dataclass(slots=True, eq=False)
class Lot:
    """
    The credits that one entry added, and how many of them are left.

    `taken` has the credits that uses took from the lot, by the source of the use. `claimed` is the number of credits
    that the lot's own reversals have taken, from any lot.
    """

    entry_id: int
    key: str
    source: str
    granted: int
    remaining: int
    place: int
    taken: Counter[str] = field(default_factory=Counter)
    claimed: int = 0
    claims: list["Use"] = field(default_factory=list)

    @property
    def is_paid(self) -> bool:
        return self.source in PAID_SOURCES

    @property
    def kept(self) -> int:
        """The lot's credits after its own reversals, used or not."""
        return self.granted - self.claimed


@dataclass(slots=True, eq=False)
class Use:
    """An entry that took credits: how many from each lot, and how many as debt."""

    key: str
    source: str
    own: Lot | None
    parts: dict[Lot, int] = field(default_factory=dict)
    debt: int = 0


class Lots:
    """The lots, uses and debt of one account after the entries posted so far, in the order of account versions."""

    def __init__(self, postings: Iterable[Posting] = ()) -> None:
        self._by_key: dict[str, Lot] = {}
        self._by_entry: dict[int, Lot] = {}
        # Given lots, then paid ones; and for each kind the place of the first lot that may have credits left.
        self._kinds: tuple[list[Lot], list[Lot]] = ([], [])
        self._first = [0, 0]
        self._uses: dict[str, Use] = {}
        self._debtors: list[Use] = []
        # Lots that have their own reversals.
        self._reversed: dict[Lot, None] = {}
        for posting in postings:
            self.post(posting)

    def __iter__(self) -> Iterator[Lot]:
        """Yield all lots, oldest first."""
        return iter(self._by_key.values())

    def in_order(self) -> Iterator[Lot]:
        """Yield the lots with credits left, in the order in which a use takes them."""
        for lots in self._kinds:
            yield from (lot for lot in lots if lot.remaining)

    def unheld(self, held: int) -> Iterator[tuple[Lot, int]]:
        """Yield the lots, each with the credits that open holds would leave, in the order in which a use takes them."""
        for lot in self.in_order():
            reserved = min(held, lot.remaining)
            held -= reserved
            if lot.remaining > reserved:
                yield lot, lot.remaining - reserved

    def lot_of(self, entry_id: int) -> Lot | None:
        """Return the lot that an entry opened."""
        return self._by_entry.get(entry_id)

    def use(self, key: str) -> Use | None:
        """Return the use of the entry with this key; None if it was reversed."""
        return self._uses.get(key)

    @property
    def given(self) -> int:
        return sum(lot.remaining for lot in self._kinds[False])

    @property
    def paid(self) -> int:
        return sum(lot.remaining for lot in self._kinds[True])

    @property
    def debt(self) -> int:
        return sum(use.debt for use in self._debtors)

    def debt_by_source(self) -> Counter[str]:
        """Return the debt by the source of the uses that caused it."""
        owed: Counter[str] = Counter()
        for use in self._debtors:
            owed[use.source] += use.debt
        return owed

    def post(self, posting: Posting) -> None:
        """Apply the next entry."""
        if posting.amount < 0:
            self._take_as(posting)
        elif posting.source == EntrySource.RELAY_REVERSAL:
            self._return(posting)
        elif posting.source == EntrySource.PAYOUT_CLAWBACK and (own := self._own_lot(posting)):
            self._restore(own, posting.amount)
        else:
            self._open(posting)
        self._settle()

    def _open(self, posting: Posting) -> None:
        lots = self._kinds[posting.source in PAID_SOURCES]
        lot = Lot(posting.entry_id, posting.key, posting.source, posting.amount, posting.amount, len(lots))
        lots.append(lot)
        self._by_key[lot.key] = self._by_entry[lot.entry_id] = lot

    def _own_lot(self, posting: Posting) -> Lot | None:
        """Return the lot of the entry that this entry names, if any."""
        key = posting.key
        if posting.source == EntrySource.PAYOUT_CLAWBACK and key.startswith(_CLAWBACK):
            return self._by_key.get(_INVOICE + key.removeprefix(_CLAWBACK).rsplit(":", 1)[0])
        if posting.source == EntrySource.EARNING_REVERSAL:
            return self._by_key.get(key.removeprefix(_EARNING_REVERSED))
        if posting.source == EXPIRY:
            return self._by_entry.get(int(key.removeprefix(_EXPIRY).rsplit(":", 1)[0]))
        return None

    def _take_as(self, posting: Posting) -> None:
        use = Use(posting.key, posting.source, self._own_lot(posting))
        self._uses[use.key] = use
        missing = -posting.amount
        if use.own is not None:
            if use.source != EXPIRY:
                use.own.claimed += missing
                use.own.claims.append(use)
                self._reversed[use.own] = None
            missing -= self._move(use.own, use, min(missing, use.own.remaining))
        use.debt = self._take(use, missing)
        if use.debt:
            self._debtors.append(use)

    def _take(self, use: Use, missing: int) -> int:
        """Take credits in the order of rule 2, and return how many are missing."""
        for kind, lots in enumerate(self._kinds):
            while missing and self._first[kind] < len(lots):
                lot = lots[self._first[kind]]
                missing -= self._move(lot, use, min(missing, lot.remaining))
                if not lot.remaining:
                    self._first[kind] += 1
        return missing

    def _return(self, posting: Posting) -> None:
        use = self._uses.pop(posting.key.removeprefix(_CHARGE_REVERSED), None)
        if use is None:
            self._open(posting)
        else:
            self._give_back(use, posting.amount)

    def _restore(self, own: Lot, restored: int) -> None:
        own.claimed -= restored
        for keeping in (own, None):
            for use in reversed(own.claims):
                restored -= self._give_back(use, restored, keeping=keeping)

    def _give_back(self, use: Use, most: int, *, keeping: Lot | None = None) -> int:
        """Give back credits that a use took, in the order of rule 7, except from the lot `keeping`; return how many."""
        returned = min(use.debt, most)
        use.debt -= returned
        if returned and not use.debt:
            self._debtors.remove(use)
        for lot in sorted(use.parts, key=_order, reverse=True):
            if lot is not keeping and returned < most:
                returned -= self._move(lot, use, -min(use.parts[lot], most - returned))
        return returned

    def _settle(self) -> None:
        """Apply rule 6, then pay debts from the rest."""
        while self._claim_again():
            pass
        while self._debtors:
            use = self._debtors[0]
            use.debt = self._take(use, use.debt)
            if use.debt:
                return
            self._debtors.pop(0)

    def _claim_again(self) -> bool:
        for lot in sorted((lot for lot in self._reversed if lot.remaining), key=_order):
            for claim in lot.claims:
                foreign = claim.debt + sum(n for other, n in claim.parts.items() if other is not lot)
                if foreign:
                    reclaimed = min(lot.remaining, foreign)
                    self._move(lot, claim, reclaimed)
                    self._give_back(claim, reclaimed, keeping=lot)
                    return True
        return False

    def _move(self, lot: Lot, use: Use, credits: int) -> int:
        """Move credits from the lot to the use, or back if negative; return how many."""
        if credits:
            lot.remaining -= credits
            lot.taken[use.source] += credits
            use.parts[lot] = use.parts.get(lot, 0) + credits
            if not use.parts[lot]:
                del use.parts[lot]
            if credits < 0:
                self._first[lot.is_paid] = min(self._first[lot.is_paid], lot.place)
        return credits


def _order(lot: Lot) -> tuple[bool, int]:
    """Return the sort key of a lot by rule 2."""
    return lot.is_paid, lot.place
