"""The state machine: two users, a few keys that repeat, and every move that touches credits or experience."""

import secrets
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import pytest
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from checkin.errors import CheckInUnavailable
from checkin.services import checkins
from credits.errors import HoldReleased, InsufficientCredits, KeyConflict
from credits.models import CreditEntry
from credits.services import adjustments, holds
from earnings.services import earnings, postbacks
from gateway.staff import approvals
from gateway.staff.approval_kinds import OwnRequest, RequestConflict, RequestDecided
from gateway.staff.models import ApprovalRequest
from payments.services import clawbacks, payouts
from payments.stripe.client import ReturnedMoney
from rewards import queries
from rewards.models import ModifierType
from rewards.services import modifiers
from tests.credits.holding import place_hold
from tests.economy import model, rows
from tests.economy.model import (
    PERMANENT,
    SUBSCRIBER,
    ModelAccount,
    ModelHold,
    ModelModifier,
    ModelNetwork,
    ModelPayout,
)
from tests.economy.moves import MOVES, Move
from tests.economy.setup import CREDITS_PER_UNIT, EXPERIENCE_PER_CENT, Setup, Subject
from tests.rewards import settlements


class EconomyMachine(RuleBasedStateMachine):
    """Moves of two users and of staff; after each the rows are compared with account."""

    setup: ClassVar[Setup]

    @initialize()
    def begin(self) -> None:
        self.run = secrets.token_hex(6)
        self.now: datetime = timezone.now().astimezone(UTC).replace(microsecond=0)
        self.subjects = [Subject(self.setup, self.now) for _ in range(2)]
        self.moved = 0
        self.refused_on: date | None = None
        self.named_holds: dict[tuple[int, int], ModelHold] = {}
        self.requests: dict[tuple[int, int], ApprovalRequest] = {}
        self.check_in_keys: dict[tuple[int, int], int] = {}

    def _of(self, owner: int) -> Subject:
        self.moved = owner
        return self.subjects[owner]

    @rule(move=MOVES)
    def make(self, move: Move) -> None:
        """Make a move: the method of its name, with its arguments."""
        name, arguments = move
        getattr(self, name)(**arguments)

    # --- money -------------------------------------------------------------------------------

    def subscribe(self, owner: int, collected: int, again: bool) -> None:
        """Pay for a month; and hear of it, or of the one before, once more."""
        subject = self._of(owner)
        repeated = subject.invoices[-1:] if again else []
        for invoice in [subject.new_invoice(collected, self.now), *repeated]:
            with transaction.atomic():
                assert payouts.apply_paid_invoice(invoice=invoice, now=self.now)
        worth = collected * CREDITS_PER_UNIT // 100
        ends_at = self.now + timedelta(days=30)
        payout = ModelPayout(worth, collected, self.now, ends_at, gained={})
        subject.model.pay_out(payout, base=collected * EXPERIENCE_PER_CENT)

    def change_what_was_paid(self, which: int, percent: int, renews: bool | None) -> None:
        """Refund a part, or win a dispute (less than before may be gone); or end the subscription, or resume it."""
        if not any(subject.invoices for subject in self.subjects):
            return
        places = [
            (owner, place)
            for owner, subject in enumerate(self.subjects)
            for place in range(len(subject.invoices))
        ]
        owner, place = places[which % len(places)]
        subject = self._of(owner)
        if renews is not None:
            subject.let_renew(renews)
            return
        invoice, payout = subject.invoices[place], subject.model.payouts[place]
        gone = payout.collected * percent // 100
        returned = ReturnedMoney(
            payment_intent_id=invoice.payment_intent_id, refunded_minor=gone, disputed_minor=0
        )
        with transaction.atomic():
            clawbacks.apply_returned_money(returned=returned, is_stale=False, cause="machine", now=self.now)
        subject.model.claw_back(payout, gone)

    # --- earnings ----------------------------------------------------------------------------

    def earn(self, owner: int, network: ModelNetwork, name: int, amount: int, back: bool) -> None:
        """Receive the postback that something was earned or is taken back; in any order, and more than once."""
        back = back and network.reverses
        self._receive_postback(owner, network, name, amount, back=back)
        if back:
            model.reverse_earning(self.subjects[owner].model, network, name, amount, self.now)
        else:
            model.credit_earning(self.subjects[owner].model, network, name, amount, self.now)

    def _receive_postback(
        self, owner: int, network: ModelNetwork, name: int, amount: int, *, back: bool
    ) -> None:
        request = self.setup.postback(
            network,
            self.subjects[owner].user,
            self._earning_id(owner, name),
            amount=amount,
            now=self.now,
            back=back,
        )
        response = postbacks.receive(slug=network.slug, request=request, now=self.now)
        assert response.status == 200, response

    def _earning_id(self, owner: int, name: int) -> str:
        return f"{self.run}-{owner}-{name}"

    # --- spending ----------------------------------------------------------------------------

    def spend(self, owner: int, name: int, amount: int, which: int, action: str) -> None:
        """Hold something, or decide what becomes of something that was held, once more too."""
        if action == "hold" or not any(subject.model.holds for subject in self.subjects):
            self._hold(owner, name, amount)
            return
        subject, hold_id, hold = self._some_hold(which)
        if action == "capture":
            self._capture(subject, hold_id, hold, amount)
        elif action == "raise":
            self._raise(subject, hold_id, hold, amount)
        elif action == "reopen":
            self._reopen(subject, hold_id, hold)
        else:
            self._release(hold_id, hold)

    def _hold(self, owner: int, name: int, amount: int) -> None:
        subject, account = self._of(owner), self.subjects[owner].model
        key, earlier = f"{self.run}:{owner}:{name}", self.named_holds.get((owner, name))
        limit = queries.debt_limit_of(user=subject.user, now=self.now)
        assert limit == account.debt_limit(self.now)
        try:
            result = place_hold(user=subject.user, credits=amount, key=key, debt_limit=limit)
        except InsufficientCredits:
            assert earlier is None
            assert not account.affords(amount, limit)
        else:
            assert result.created is (earlier is None)
            if earlier is None:
                assert account.affords(amount, limit)
                self.named_holds[owner, name] = placed = ModelHold(amount)
                account.holds.append((result.hold.pk, placed))
                snapshot = rows.snapshots([subject.account_id])[subject.account_id]
                assert snapshot.balance - snapshot.held >= -limit
            with pytest.raises(KeyConflict):
                place_hold(user=self.subjects[1 - owner].user, credits=amount, key=key)

    def _some_hold(self, which: int) -> tuple[Subject, int, ModelHold]:
        """Return one of all holds, open or closed, with its owner and its id."""
        placed = [
            (owner, *hold) for owner, subject in enumerate(self.subjects) for hold in subject.model.holds
        ]
        owner, hold_id, hold = placed[which % len(placed)]
        return self._of(owner), hold_id, hold

    def _raise(self, subject: Subject, hold_id: int, hold: ModelHold, amount: int) -> None:
        account = subject.model
        limit, more = account.debt_limit(self.now), max(amount - hold.amount, 0)
        expected = hold.paid is None and (more == 0 or account.affords(more, limit))
        done = holds.raise_hold(hold_id=hold_id, credits=amount, badge_debt=limit)
        assert done is expected
        if expected:
            hold.amount += more

    def _capture(self, subject: Subject, hold_id: int, hold: ModelHold, cost: int) -> None:
        """Settle what was held; a repeat finds the first charge, and rewards nothing again."""
        try:
            with transaction.atomic():
                settlements.settle({hold_id: cost}, now=self.now)
        except HoldReleased:
            assert hold.paid == 0
            return
        if hold.paid is None:
            subject.model.charge(hold, min(cost, hold.amount), self.now)
        assert -CreditEntry.objects.get(hold=hold_id).amount == hold.paid

    def _reopen(self, subject: Subject, hold_id: int, hold: ModelHold) -> None:
        """Undo the end of a hold; open holds stay as they are."""
        with transaction.atomic():
            settlements.reverse([hold_id])
        if hold.paid is not None:
            subject.model.reopen(hold)

    def _release(self, hold_id: int, hold: ModelHold) -> None:
        assert holds.release(hold_id=hold_id) is (hold.paid is None)
        if hold.paid is None:
            hold.paid = 0

    # --- check-in, modifiers, time -----------------------------------------------------------

    def check_in(self, owner: int, key: int, waits: bool) -> None:
        """Check in, with a key that may repeat; what dropped is read, what it does is worked out."""
        if waits and self.refused_on == self.now.date():
            self._let_time_pass(144)
        subject, account, day = self._of(owner), self.subjects[owner].model, self.now.date().isoformat()
        used, earlier = account.check_ins.get(day, 0), self.check_in_keys.get((owner, key))
        try:
            done = checkins.execute(user=subject.user, now=self.now, idempotency_key=f"{self.run}-{key}")
        except CheckInUnavailable:
            assert earlier is None
            assert used >= account.attempts(self.now)
            self.refused_on = self.now.date()
            return
        if earlier is not None:
            assert done.pk == earlier
            return
        assert used < account.attempts(self.now)
        assert done.attempt == used + 1
        self.check_in_keys[owner, key] = done.pk
        account.check_ins[day] = used + 1
        self._drop(subject, done.effect_key, done.result)

    def _drop(self, subject: Subject, key: str, drop: dict[str, object]) -> None:
        account, kind, value = subject.model, str(drop["type"]), Fraction(str(drop["value"]))
        if kind == "EXPERIENCE":
            account.gain(PERMANENT, int(value))
            return
        assert account.is_proven
        if kind == "CREDITS":
            account.post(int(value), "CHECK_IN")
        else:
            ends_at = self.now + timedelta(minutes=int(str(drop["minutes"])))
            account.modifiers[key] = ModelModifier(kind, value, ends_at)

    def give_a_modifier(self, owner: int, name: int, kind: str, percent: int, hours: int) -> None:
        subject, key = self._of(owner), f"{self.run}:{owner}:{name}"
        earlier = subject.model.modifiers.get(key)
        try:
            modifiers.grant(
                user=subject.user,
                modifier_type=ModifierType(kind),
                value=Decimal(percent) / 100,
                minutes=hours * 60,
                key=key,
                reason="machine",
                actor=self.setup.staff[0],
            )
        except KeyConflict:
            assert earlier is not None
            assert earlier.kind != kind
            return
        assert earlier is None or earlier.kind == kind
        ends_at = self.now + timedelta(hours=hours)
        subject.model.modifiers.setdefault(key, ModelModifier(kind, Fraction(percent, 100), ends_at))

    def let_time_pass(self, tens: int, sweeps: bool) -> None:
        """Let tens of minutes go by; modifiers and months end, and the sweeps give what was held and is due."""
        self._let_time_pass(tens)
        if sweeps:
            earnings.release_due(now=self.now)
            modifiers.purge()
            for subject in self.subjects:
                model.release_due_earnings(subject.model, self.now)
                subject.model.forget_modifiers(self.now)

    def _let_time_pass(self, tens: int) -> None:
        self.now += timedelta(minutes=10 * tens)
        rows.age_modifiers([subject.user.pk for subject in self.subjects], 10 * tens)

    # --- staff -------------------------------------------------------------------------------

    def ask_to_adjust(self, owner: int, name: int, amount: int, large: bool, takes: bool) -> None:
        """Ask for a correction: small ones are posted at once, until they are a large one together."""
        subject, asker = self._of(owner), self.setup.staff[name % 2]
        limit = settings.APPROVAL_LIMITS["credits"]["person"]
        wanted = (amount + large * limit) * (-1 if takes else 1)
        earlier = self.requests.get((owner, name))
        try:
            request = adjustments.request(
                user=subject.user,
                credits=wanted,
                key=f"{self.run}:{owner}:{name}",
                actor=asker,
                reason="machine",
            )
        except RequestConflict:
            assert earlier is not None
            assert (earlier.payload["credits"], earlier.requested_by) != (wanted, asker)
            return
        assert earlier is None or request.pk == earlier.pk
        if earlier is not None:
            return
        alone = [
            other.amount
            for (of, _), other in self.requests.items()
            if of == owner and not other.needs_second_person
        ]
        assert request.needs_second_person is (sum(alone) + abs(wanted) > limit)
        self.requests[owner, name] = request
        if not request.needs_second_person:
            subject.model.post(wanted, "STAFF_ADJUSTMENT")

    def decide(self, which: int, who: int, agrees: bool) -> None:
        if not self.requests:
            return
        (owner, name), request = list(self.requests.items())[which % len(self.requests)]
        decide = approvals.approve if agrees else approvals.reject
        try:
            decide(request_id=request.pk, actor=self.setup.staff[who], reason="machine")
        except RequestDecided:
            assert request.status != "waiting"
        except OwnRequest:
            assert (request.status, who) == ("waiting", name % 2)
        else:
            assert (request.status, who) == ("waiting", 1 - name % 2)
            request.refresh_from_db()
            if agrees:
                self.subjects[owner].model.post(request.payload["credits"], "STAFF_ADJUSTMENT")

    # --- what must hold after every move -----------------------------------------------------

    @invariant()
    def the_rows_equal_the_model(self) -> None:
        """Read everything of both users, whichever moved."""
        snapshots = rows.snapshots([subject.account_id for subject in self.subjects])
        for owner, subject in enumerate(self.subjects):
            compare(snapshots[subject.account_id], subject.model, now=self.now)
            assert snapshots[subject.account_id].earnings == {
                (slug, self._earning_id(owner, name)): (earning.state, earning.credits)
                for (slug, name), earning in subject.model.earnings.items()
                if earning.state is not None
            }

    @invariant()
    def the_service_returns_the_benefits_of_the_model(self) -> None:
        """Ask the service about the user that moved last."""
        subject = self.subjects[self.moved]
        rewards, account = queries.current_rewards(user=subject.user, now=self.now), subject.model
        assert rewards.is_subscriber is account.is_subscribed(self.now)
        for kind in ModifierType:
            assert Fraction(rewards.benefits.bonus(kind)) == account.bonus(kind, self.now)
        assert rewards.benefits.badge_debt == account.badge_debt(self.now)
        assert rewards.benefits.check_in_attempts == account.attempts(self.now)


def compare(snapshot: rows.Snapshot, account: ModelAccount, *, now: datetime) -> None:
    """
    Assert that the rows agree with each other and with account.

    Totals are the sums of their rows; entries are a chain without gaps, each with a key
    of its own; experience is a log; the same modifiers are active.
    """
    assert snapshot.balance == sum(entry.amount for entry in snapshot.entries) == account.balance
    assert snapshot.held == snapshot.open_holds == account.held
    assert snapshot.version == len(snapshot.entries)
    balance = 0
    for version, entry in enumerate(snapshot.entries, 1):
        assert (entry.version, entry.before, entry.after) == (version, balance, balance + entry.amount)
        balance = entry.after
    assert len({entry.key for entry in snapshot.entries}) == len(snapshot.entries)
    assert [(entry.amount, entry.source) for entry in snapshot.entries] == account.entries
    totals = dict.fromkeys((PERMANENT, SUBSCRIBER), 0)
    for track, amount, total in snapshot.experience:
        totals[track] += amount
        assert total == totals[track] >= 0
    assert [(track, amount) for track, amount, _ in snapshot.experience] == account.experience_log
    assert totals == {PERMANENT: snapshot.permanent, SUBSCRIBER: snapshot.subscriber}
    assert snapshot.active == account.active(now)
