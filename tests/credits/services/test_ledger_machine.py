"""Any sequence of moves leaves the rows that the reference model of the ledger has."""

import secrets
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from credits.errors import HoldReleased, InsufficientCredits, KeyConflict
from credits.models import EntrySource
from credits.services import entries as credits_entries
from credits.services import holds as credits_holds
from credits.services.reconciliation import find_differences
from tests.credits.rows import query
from tests.factories import UserFactory
from users.models import User

_AMOUNTS = st.integers(1, 60)
_OWNERS = st.integers(0, 1)
_NAMES = st.integers(0, 5)


@dataclass
class ReferenceHold:
    """A hold; `paid` is None until it is closed, and 0 for a release."""

    owner: int
    amount: int
    paid: int | None = None


@dataclass
class ReferenceLedger:
    """The reference model of the ledger: signed postings by key, holds by key."""

    postings: dict[str, tuple[int, int]] = field(default_factory=dict)
    holds: dict[str, ReferenceHold] = field(default_factory=dict)

    def balance(self, owner: int) -> int:
        charged = sum(hold.paid or 0 for hold in self.holds.values() if hold.owner == owner)
        return sum(amount for who, amount in self.postings.values() if who == owner) - charged

    def held(self, owner: int) -> int:
        return sum(hold.amount for hold in self.holds.values() if hold.owner == owner and hold.paid is None)

    def affords(self, owner: int, more: int, debt_limit: int) -> bool:
        return self.balance(owner) - self.held(owner) - more >= -debt_limit


class LedgerMachine(RuleBasedStateMachine):
    """Two users, a handful of keys that repeat, and amounts small enough to run short."""

    @initialize()
    def begin(self) -> None:
        self.run = secrets.token_hex(8)
        self.users: list[User] = [UserFactory.create(), UserFactory.create()]
        self.accounts = [credits_entries.open_account(user=user).pk for user in self.users]
        self.reference = ReferenceLedger()
        self.ids: dict[str, int] = {}

    def _post(self, key: str, owner: int, amount: int) -> None:
        known = self.reference.postings.get(key)
        actor, user = None, self.users[owner]
        try:
            if key.endswith("grant"):
                entry = credits_entries.grant(
                    user=user, credits=amount, source=EntrySource.SURVEYS, key=self.run + key
                )
            else:
                entry = credits_entries.adjust(
                    user=user, credits=amount, key=self.run + key, actor=actor, reason="test"
                )
        except KeyConflict:
            assert known not in {None, (owner, amount)}
        else:
            assert known in {None, (owner, amount)}
            assert entry.amount == amount
            self.reference.postings[key] = (owner, amount)

    @rule(name=_NAMES, owner=_OWNERS, amount=_AMOUNTS)
    def grant(self, name: int, owner: int, amount: int) -> None:
        self._post(f"{name}-grant", owner, amount)

    @rule(name=_NAMES, owner=_OWNERS, amount=_AMOUNTS, sign=st.sampled_from([1, -1]))
    def adjust(self, name: int, owner: int, amount: int, sign: int) -> None:
        self._post(f"{name}-adjust", owner, sign * amount)

    @rule(name=_NAMES, owner=_OWNERS, amount=_AMOUNTS, debt=st.integers(0, 20))
    def hold(self, name: int, owner: int, amount: int, debt: int) -> None:
        key, known = f"{name}-hold", self.reference.holds.get(f"{name}-hold")
        balance = self.reference.balance(owner)
        try:
            result = credits_holds.hold(
                user=self.users[owner], credits=amount, key=self.run + key, debt_limit=debt
            )
        except KeyConflict:
            assert known is not None
            assert known.owner != owner
        except InsufficientCredits:
            assert known is None
            assert not self.reference.affords(owner, amount, debt)
        else:
            assert result.balance == balance
            assert result.created is (known is None)
            if known is None:
                assert self.reference.affords(owner, amount, debt)
                self.reference.holds[key] = ReferenceHold(owner, amount)
                self.ids[key] = result.hold.pk
            else:
                assert (known.owner, self.ids[key]) == (owner, result.hold.pk)

    @rule(name=_NAMES, amount=_AMOUNTS, debt=st.integers(0, 20))
    def raise_hold(self, name: int, amount: int, debt: int) -> None:
        hold = self.reference.holds.get(f"{name}-hold")
        if hold is None:
            return
        more = max(amount - hold.amount, 0)
        expected = hold.paid is None and (more == 0 or self.reference.affords(hold.owner, more, debt))
        assert (
            credits_holds.raise_hold(hold_id=self.ids[f"{name}-hold"], credits=amount, debt_limit=debt)
            is expected
        )
        if expected:
            hold.amount += more

    @rule(name=_NAMES, cost=st.integers(0, 80))
    def capture(self, name: int, cost: int) -> None:
        hold = self.reference.holds.get(f"{name}-hold")
        if hold is None:
            return
        first = hold.paid is None
        try:
            entry = credits_holds.capture(hold_id=self.ids[f"{name}-hold"], credits=cost)
        except HoldReleased:
            assert hold.paid == 0
            assert cost
            return
        if first:
            hold.paid = cost
        assert (-entry.amount if entry else 0) == hold.paid

    @rule(name=_NAMES)
    def release(self, name: int) -> None:
        hold = self.reference.holds.get(f"{name}-hold")
        if hold is None:
            return
        assert credits_holds.release(hold_id=self.ids[f"{name}-hold"]) is (hold.paid is None)
        if hold.paid is None:
            hold.paid = 0

    @invariant()
    def the_rows_are_those_of_the_reference_model(self) -> None:
        rows = query(
            "SELECT balance, held FROM credits_account WHERE id = ANY(%s) ORDER BY id", self.accounts
        )
        assert rows == [(self.reference.balance(owner), self.reference.held(owner)) for owner in (0, 1)]
        entries = len(self.reference.postings) + sum(
            bool(hold.paid) for hold in self.reference.holds.values()
        )
        counted = (
            "SELECT count(*), coalesce(sum(account_version), 0) FROM credits_entry WHERE account_id = ANY(%s)"
        )
        versions = (
            "SELECT coalesce(sum(version * (version + 1) / 2), 0) FROM credits_account WHERE id = ANY(%s)"
        )
        ((count, sum_of_versions),) = query(counted, self.accounts)
        assert count == entries
        assert query(versions, self.accounts) == [(sum_of_versions,)]

    def teardown(self) -> None:
        assert find_differences() == []


@pytest.mark.django_db
def test_any_sequence_of_moves_leaves_the_rows_of_the_reference_model() -> None:
    run_state_machine_as_test(
        LedgerMachine,
        settings=settings(
            max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
