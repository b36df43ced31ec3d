"""The lots of an account: which credits each use has taken, against a model that moves single credits."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from credits.lots import EXPIRY, Lot, Lots, Posting

GIVEN, PAID, CHARGE, BACK, CLAWBACK, EARNING_BACK = (
    "CHECK_IN", "SUBSCRIBED_PAYOUT", "RELAY_TRANSACTION", "RELAY_REVERSAL", "PAYOUT_CLAWBACK", "EARNING_REVERSAL",
)  # fmt: skip
FIRST = "FIRST_CREDITS"


def invoice(number: int) -> str:
    return f"stripe:invoice:in_{number}"


def clawback(number: int, times: int = 1) -> str:
    return f"stripe:clawback:in_{number}:{times}"


def lots_of(*postings: tuple[str, str, int]) -> Lots:
    return Lots(Posting(place, *posting) for place, posting in enumerate(postings, 1))


def left(lots: Lots) -> dict[str, int]:
    return {lot.key: lot.remaining for lot in lots}


def test_a_use_takes_given_credits_before_paid_ones_and_the_oldest_first() -> None:
    lots = lots_of((invoice(1), PAID, 10), ("a", GIVEN, 4), ("b", GIVEN, 4), ("hold:1", CHARGE, -9))

    assert left(lots) == {invoice(1): 9, "a": 0, "b": 0}
    assert (lots.given, lots.paid, lots.debt) == (0, 9, 0)


def test_credits_that_no_lot_covers_are_debt_that_the_next_credits_pay() -> None:
    lots = lots_of(("a", GIVEN, 3), ("hold:1", CHARGE, -8))
    assert (left(lots), lots.debt) == ({"a": 0}, 5)

    lots.post(Posting(9, invoice(1), PAID, 7))

    assert (left(lots), lots.debt) == ({"a": 0, invoice(1): 2}, 0)


def test_a_reversed_charge_returns_to_the_lots_that_it_took() -> None:
    lots = lots_of(
        ("a", GIVEN, 3), (invoice(1), PAID, 7), ("hold:1", CHARGE, -5), ("b", GIVEN, 9), ("reversal:hold:1", BACK, 5)
    )  # fmt: skip

    assert left(lots) == {"a": 3, invoice(1): 7, "b": 9}


def test_a_clawback_takes_the_lot_of_its_own_invoice_first() -> None:
    lots = lots_of((invoice(1), PAID, 10), (invoice(2), PAID, 10), (clawback(2), CLAWBACK, -10))

    assert left(lots) == {invoice(1): 10, invoice(2): 0}


def test_credits_that_return_to_a_refunded_lot_return_what_its_clawback_took_elsewhere() -> None:
    lots = lots_of(
        (invoice(1), PAID, 10), ("hold:1", CHARGE, -6), (invoice(2), PAID, 10), (clawback(1), CLAWBACK, -10)
    )  # fmt: skip
    assert left(lots) == {invoice(1): 0, invoice(2): 4}

    lots.post(Posting(9, "reversal:hold:1", BACK, 6))

    assert left(lots) == {invoice(1): 0, invoice(2): 10}


def test_reinstated_money_returns_what_the_clawback_took() -> None:
    lots = lots_of(
        (invoice(1), PAID, 10), ("hold:1", CHARGE, -6), ("a", GIVEN, 10), (clawback(1), CLAWBACK, -10),
        (clawback(1, 2), CLAWBACK, 8),
    )  # fmt: skip

    assert left(lots) == {invoice(1): 2, "a": 10}


def test_an_expiry_takes_the_lot_that_it_names_alone() -> None:
    lots = lots_of(("a", GIVEN, 5), ("b", GIVEN, 5), ("expiry:2:0", EXPIRY, -5))

    assert left(lots) == {"a": 5, "b": 0}


def test_a_charge_of_paid_credits_takes_no_others_as_long_as_some_are_left() -> None:
    lots = lots_of(("a", GIVEN, 5), (invoice(1), PAID, 5))
    lots.post(Posting(9, "hold:1", CHARGE, -4, paid_only=True))
    assert left(lots) == {"a": 5, invoice(1): 1}

    lots.post(Posting(10, "hold:2", CHARGE, -3, paid_only=True))
    assert left(lots) == {"a": 3, invoice(1): 0}


def test_first_credits_pay_first_whatever_was_given_before_or_is_reversed() -> None:
    lots = lots_of(
        ("a", GIVEN, 5), ("first", FIRST, 6), ("hold:1", CHARGE, -4), ("hold:2", CHARGE, -4), (invoice(1), PAID, 5)
    )  # fmt: skip
    assert left(lots) == {"a": 3, "first": 0, invoice(1): 5}

    lots.post(Posting(9, "reversal:hold:1", BACK, 4))
    assert left(lots) == {"a": 5, "first": 2, invoice(1): 5}


def test_first_credits_that_are_taken_back_leave_others_alone() -> None:
    lots = lots_of(
        ("first:1", FIRST, 6), (invoice(1), PAID, 5), ("first:2", FIRST, 6), ("hold:1", CHARGE, -2)
    )
    lots.post(Posting(9, "reversal:first:2", BACK, -6))
    assert left(lots) == {"first:1": 4, invoice(1): 5, "first:2": 0}


# --- A model that moves single credits, one at a time.


@dataclass(eq=False)
class Unit:
    """One credit that a use took: of which lot, or None as long as it is debt."""

    lot: str | None = None


@dataclass
class Naive:
    """Free credits of each lot, and the units of each use, without totals or indexes."""

    order: list[tuple[str, bool]] = field(default_factory=list)
    free: Counter[str] = field(default_factory=Counter)
    uses: dict[str, tuple[str | None, list[Unit]]] = field(default_factory=dict)
    lot_by_id: dict[int, str] = field(default_factory=dict)

    def post(self, posting: Posting) -> None:
        own = self._own(posting)
        if posting.amount < 0:
            units = [Unit() for _ in range(-posting.amount)]
            for unit in units:
                unit.lot = self._pick(own)
            self.uses[posting.key] = (own if posting.source != EXPIRY else None, units)
        elif posting.source == BACK:
            _, units = self.uses.pop(posting.key.removeprefix("reversal:"))
            self.free.update(unit.lot for unit in units if unit.lot)
        elif posting.source == CLAWBACK:
            for _ in range(posting.amount):
                self._restore_one(own)
        else:
            self.order.append((posting.key, posting.source == PAID))
            self.free[posting.key] += posting.amount
            self.lot_by_id[posting.entry_id] = posting.key
        while self._swap() or self._pay():
            pass

    def _own(self, posting: Posting) -> str | None:
        name = {
            CLAWBACK: posting.key.replace("clawback", "invoice").rsplit(":", 1)[0],
            EARNING_BACK: posting.key.removeprefix("reversed-"),
            EXPIRY: self.lot_by_id.get(int(posting.key.split(":")[1])) if posting.source == EXPIRY else None,
        }.get(posting.source)
        return name if name in dict(self.order) else None

    def _in_order(self) -> Iterator[str]:
        for wanted in (False, True):
            yield from (name for name, is_paid in self.order if is_paid is wanted)

    def _pick(self, own: str | None) -> str | None:
        for name in (own, *self._in_order()):
            if name and self.free[name]:
                self.free[name] -= 1
                return name
        return None

    def _claims(self, own: str | None) -> list[list[Unit]]:
        return [units for name, units in self.uses.values() if own and name == own]

    def _last(self, units: list[Unit], keeping: str | None) -> Unit | None:
        """Return the unit that a use gives back first: debt, then the lot that uses take last."""
        order = [*self._in_order()]
        given_back = [unit for unit in units if unit.lot is None or unit.lot != keeping]
        return max(
            given_back, key=lambda unit: order.index(unit.lot) if unit.lot else len(order), default=None
        )

    def _restore_one(self, own: str | None) -> None:
        for keeping in (own, None):
            for units in reversed(self._claims(own)):
                unit = self._last(units, keeping)
                if unit is not None:
                    units.remove(unit)
                    self.free.update([unit.lot] if unit.lot else [])
                    return

    def _swap(self) -> bool:
        for name in self._in_order():
            for units in self._claims(name):
                unit = self._last(units, name)
                if self.free[name] and unit is not None:
                    self.free[name] -= 1
                    self.free.update([unit.lot] if unit.lot else [])
                    unit.lot = name
                    return True
        return False

    def _pay(self) -> bool:
        for _, units in self.uses.values():
            for unit in units:
                if unit.lot is None and (name := self._pick(None)):
                    unit.lot = name
                    return True
        return False


def history(chance: random.Random, length: int) -> Iterator[Posting]:
    """Yield random entries that the service could post."""
    charges: dict[str, int] = {}
    granted: dict[str, int] = {}
    taken: Counter[str] = Counter()
    model = Lots()
    for entry_id in range(1, length + 1):
        amount = chance.randint(1, 9)
        move = chance.choice(
            ["given", "paid", "charge", "charge", "reverse", "claw", "restore", "earning", "expire"]
        )
        posting = None
        if move == "given":
            posting = Posting(entry_id, f"earning:x:{entry_id}", GIVEN, amount)
            granted[posting.key] = amount
        elif move == "paid":
            posting = Posting(entry_id, invoice(entry_id), PAID, amount)
            granted[posting.key] = amount
        elif move == "charge":
            posting = Posting(entry_id, f"hold:{entry_id}", CHARGE, -amount)
            charges[posting.key] = amount
        elif move == "reverse" and charges:
            key = chance.choice(list(charges))
            posting = Posting(entry_id, f"reversal:{key}", BACK, charges.pop(key))
        elif move in {"claw", "restore"} and any(":invoice:" in key for key in granted):
            key = chance.choice([key for key in granted if ":invoice:" in key])
            room = granted[key] - taken[key] if move == "claw" else taken[key]
            if room:
                moved = chance.randint(1, room) * (1 if move == "restore" else -1)
                taken[key] -= moved
                posting = Posting(
                    entry_id, f"{key.replace('invoice', 'clawback')}:{entry_id}", CLAWBACK, moved
                )
        elif move == "earning" and any(key.startswith("earning") for key in granted):
            key = chance.choice([key for key in granted if key.startswith("earning")])
            posting = Posting(entry_id, f"reversed-{key}", EARNING_BACK, -granted.pop(key))
        elif move == "expire":
            lots = [lot for lot in model if lot.remaining and not lot.is_paid]
            if lots:
                lot = chance.choice(lots)
                posting = Posting(entry_id, f"expiry:{lot.entry_id}:{entry_id}", EXPIRY, -lot.remaining)
        if posting is not None:
            model.post(posting)
            yield posting


def used(lots: Lots) -> dict[str, Counter[str]]:
    return {lot.key: +lot.taken for lot in lots}


@pytest.mark.parametrize("seed", range(int(os.environ.get("LOTS_HISTORIES", "100"))))
def test_lots_add_up_to_the_balance_and_equal_a_model_of_single_credits(seed: int) -> None:
    chance = random.Random(random.random() + seed)
    lots, naive, balance = Lots(), Naive(), 0
    for posting in history(chance, chance.randint(1, 60)):
        lots.post(posting)
        naive.post(posting)
        balance += posting.amount

        assert lots.given + lots.paid - lots.debt == balance
        assert lots.given + lots.paid == max(0, balance)
        for lot in lots:
            check(lot)
        assert left(lots) == {name: naive.free[name] for name, _ in naive.order}
        assert used(lots) == used_by(naive)


def used_by(naive: Naive) -> dict[str, Counter[str]]:
    taken: dict[str, Counter[str]] = {name: Counter() for name, _ in naive.order}
    for key, (_, units) in naive.uses.items():
        for unit in units:
            if unit.lot:
                taken[unit.lot][source_of(key)] += 1
    return taken


def source_of(key: str) -> str:
    begins = {"hold": CHARGE, "stripe": CLAWBACK, "reversed": EARNING_BACK, "expiry": EXPIRY}
    return begins[key.split(":")[0].split("-")[0]]


def check(lot: Lot) -> None:
    assert 0 <= lot.remaining <= lot.kept or lot.taken[EXPIRY] or not lot.is_paid
    assert 0 <= lot.claimed <= lot.granted
    assert all(taken >= 0 for taken in lot.taken.values())
    assert lot.remaining + lot.taken.total() == lot.granted


@pytest.mark.parametrize("kind", [GIVEN, PAID])
def test_a_long_history_is_folded_in_linear_time(kind: str) -> None:
    lots = Lots()
    for number in range(20_000):
        lots.post(Posting(2 * number + 1, f"lot:{number}", kind, 3))
        lots.post(Posting(2 * number + 2, f"hold:{number}", CHARGE, -2))

    assert lots.given + lots.paid == 20_000
