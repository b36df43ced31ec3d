"""
Lots: which credits each use has taken. Nothing is stored; lots are computed from the entries of one account.

The rule, version 2:

1. An entry that adds credits opens a *lot*. A lot of collected money is *paid*, every other lot is *given*.
2. A use takes first credits, then other given lots, then paid ones, and of each kind the oldest first. A charge that
   must be paid for (`paid_only`) takes the kinds in the reverse order.
3. An entry that names an earlier one first takes that entry's lot: a clawback the lot of its own invoice, the reversal
   of an earning the earning's, that of first credits theirs, an expiry the lot that expires. It takes the rest by
   rule 2.
4. The rest that no lot covers is *debt*, not a lot: the next credits pay it, the oldest use first.
5. A charge that is reversed returns to the lots that it took. Reinstated money returns what its clawbacks took, the
   newest clawback first: what they took from other lots, then what they took from its own.
6. Credits that return to a lot whose reversal took other lots are taken by that reversal, which returns those lots.
   Credits that return to the newest first credits are taken by the other charges in the same way, unless they are
   `paid_only`: whatever is reversed, first credits pay first (`HomeCredits.spent`).
7. If only a part returns, debt returns first, then paid lots, given ones and first credits, the newest first.

The balance is therefore the sum of the remaining credits of all lots, less the debt; only one of the two is not zero.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from credits.models import EntrySource

RULE_VERSION = 2
# The sources of collected money.
PAID_SOURCES = frozenset({EntrySource.SUBSCRIBED_PAYOUT, EntrySource.CREDIT_PURCHASE})
EXPIRY = EntrySource.CREDIT_EXPIRY
# The kinds of lots, in the order in which uses take them.
_FIRST, _GIVEN, _PAID = range(3)
_KINDS = (_FIRST, _GIVEN, _PAID)
_CHARGE_REVERSED = "reversal:"
_EARNING_REVERSED = "reversed-"
_CLAWBACK, _INVOICE, _EXPIRY = "stripe:clawback:", "stripe:invoice:", "expiry:"


def clawback_key(*, invoice_id: str, number: int) -> str:
    """Return the key of the number-th clawback of an invoice."""
    return f"{_CLAWBACK}{invoice_id}:{number}"


class Posting(NamedTuple):
    """The columns of an entry from which lots are computed, and whether it charges a `paid_only` hold."""

    entry_id: int
    key: str
    source: str
    amount: int
    paid_only: bool = False


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
    place: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    claimed: int = 0
    claims: list["Use"] = field(default_factory=list)

    @property
    def is_paid(self) -> bool:
        return self.source in PAID_SOURCES

    @property
    def kind(self) -> int:
        if self.is_paid:
            return _PAID
        return _FIRST if self.source == EntrySource.FIRST_CREDITS else _GIVEN

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
    paid_only: bool = False
    parts: dict[Lot, int] = field(default_factory=dict)
    debt: int = 0


class Lots:
    """The lots, uses and debt of one account after the entries posted so far, in the order of account versions."""

    def __init__(self, postings: Iterable[Posting] = ()) -> None:
        self._by_key: dict[str, Lot] = {}
        self._by_entry: dict[int, Lot] = {}
        # The lots of each kind, and the place of the first lot that may have credits left.
        self._kinds: tuple[list[Lot], ...] = tuple([] for _ in _KINDS)
        self._first = [0 for _ in _KINDS]
        self._uses: dict[str, Use] = {}
        self._debtors: list[Use] = []
        # Lots that have their own reversals.
        self._reversed: dict[Lot, None] = {}
        # The newest first credits, unless they were reversed, and the charges that have taken others instead.
        self._first_credits: Lot | None = None
        self._beyond: list[Use] = []
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
        return sum(lot.remaining for kind in (_FIRST, _GIVEN) for lot in self._kinds[kind])

    @property
    def paid(self) -> int:
        return sum(lot.remaining for lot in self._kinds[_PAID])

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
        lot = Lot(posting.entry_id, posting.key, posting.source, posting.amount, posting.amount)
        lot.place = len(self._kinds[lot.kind])
        self._kinds[lot.kind].append(lot)
        self._by_key[lot.key] = self._by_entry[lot.entry_id] = lot
        if lot.kind == _FIRST:
            self._first_credits = lot
            self._beyond = [use for use in self._uses.values() if _spends_first(use)]

    def _own_lot(self, posting: Posting) -> Lot | None:
        """Return the lot of the entry that this entry names, if any."""
        key = posting.key
        if posting.source == EntrySource.PAYOUT_CLAWBACK and key.startswith(_CLAWBACK):
            return self._by_key.get(_INVOICE + key.removeprefix(_CLAWBACK).rsplit(":", 1)[0])
        if posting.source == EntrySource.EARNING_REVERSAL:
            return self._by_key.get(key.removeprefix(_EARNING_REVERSED))
        if posting.source == EntrySource.RELAY_REVERSAL:
            return self._by_key.get(key.removeprefix(_CHARGE_REVERSED))
        if posting.source == EXPIRY:
            return self._by_entry.get(int(key.removeprefix(_EXPIRY).rsplit(":", 1)[0]))
        return None

    def _take_as(self, posting: Posting) -> None:
        use = Use(posting.key, posting.source, self._own_lot(posting), posting.paid_only)
        self._uses[use.key] = use
        missing = -posting.amount
        if use.own is not None:
            if use.source != EXPIRY:
                use.own.claimed += missing
                use.own.claims.append(use)
                self._reversed[use.own] = None
                if use.own is self._first_credits:
                    self._first_credits, self._beyond = None, []
            missing -= self._move(use.own, use, min(missing, use.own.remaining))
        use.debt = self._take(use, missing)
        if use.debt:
            self._debtors.append(use)
        if self._first_credits and _spends_first(use) and _foreign(use, self._first_credits):
            self._beyond.append(use)

    def _take(self, use: Use, missing: int) -> int:
        """Take credits in the order of rule 2, and return how many are missing."""
        for kind in reversed(_KINDS) if use.paid_only else _KINDS:
            lots = self._kinds[kind]
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
        if self._first_credits and self._first_credits.remaining and self._beyond:
            use = self._beyond[-1]
            self._claim(self._first_credits, use)
            if not _foreign(use, self._first_credits):
                self._beyond.pop()
            return True
        for lot in sorted((lot for lot in self._reversed if lot.remaining), key=_order):
            for claim in lot.claims:
                if self._claim(lot, claim):
                    return True
        return False

    def _claim(self, lot: Lot, use: Use) -> int:
        """Let a use take from a lot what it has taken from others, which it gives back; return how many credits."""
        reclaimed = min(lot.remaining, _foreign(use, lot))
        self._move(lot, use, reclaimed)
        return self._give_back(use, reclaimed, keeping=lot)

    def _move(self, lot: Lot, use: Use, credits: int) -> int:
        """Move credits from the lot to the use, or back if negative; return how many."""
        if credits:
            lot.remaining -= credits
            lot.taken[use.source] += credits
            use.parts[lot] = use.parts.get(lot, 0) + credits
            if not use.parts[lot]:
                del use.parts[lot]
            if credits < 0:
                self._first[lot.kind] = min(self._first[lot.kind], lot.place)
        return credits


def _order(lot: Lot) -> tuple[int, int]:
    """Return the sort key of a lot by rule 2."""
    return lot.kind, lot.place


def _spends_first(use: Use) -> bool:
    return use.source == EntrySource.RELAY_TRANSACTION and not use.paid_only


def _foreign(use: Use, lot: Lot) -> int:
    """Return the credits that a use has taken as debt and from other lots."""
    return use.debt + sum(taken for other, taken in use.parts.items() if other is not lot)
