"""Random histories of an account with first credits beside a model of three numbers."""

import json
import os
import random
import secrets
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.utils import timezone

from credits.lots import Lots, Posting
from credits.models import CreditAccount, CreditEntry, CreditHold, EntrySource, ExpiringLot, HomeCredits
from credits.queries import POSTING
from credits.services import entries, expiry, holds
from credits.services.reconciliation import find_differences
from gateway.common import db
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db
_ELSEWHERE = 77


@dataclass
class Model:
    """First credits pay first, but never elsewhere; what is left of them expires."""

    first: int
    others: int = 0
    # Of each charged hold: the credits, and whether it could take first credits.
    charges: dict[int, tuple[int, bool]] = field(default_factory=dict)
    expired: int = 0

    @property
    def left(self) -> int:
        return max(
            0, self.first - self.expired - sum(cost for cost, is_home in self.charges.values() if is_home)
        )

    @property
    def balance(self) -> int:
        return self.first + self.others - self.expired - sum(cost for cost, _ in self.charges.values())


@dataclass
class History:
    """An account whose moves are posted, and counted in the model."""

    chance: random.Random
    user: User
    model: Model

    def grant(self, source: EntrySource) -> None:
        amount = self.chance.randint(1, 60)
        entries.grant(user=self.user, credits=amount, source=source, key=secrets.token_hex(16))
        self.model.others += amount

    def charge(self, *, elsewhere: bool, paid_only: bool = False) -> None:
        amount = self.chance.randint(1, 40)
        wanted = {"place": 0, "user_id": self.user.pk, "key": secrets.token_hex(16), "credits": amount}
        wanted |= {"debt_limit": 0, "paid_only": paid_only, "elsewhere": _ELSEWHERE if elsewhere else None}
        outcome, hold = db.only_row(
            "SELECT outcome, hold_id FROM credits_place_holds(%(wanted)s::jsonb)",
            {"wanted": json.dumps([wanted])},
        )
        if outcome != "placed":
            assert elsewhere or amount > self.model.balance
            return
        is_home = not paid_only and not (elsewhere and self.model.left)
        self._close(hold, cost=self.chance.randint(0, amount), is_home=is_home)

    def reverse(self) -> None:
        if self.model.charges:
            hold, (_, is_home) = self.chance.choice(list(self.model.charges.items()))
            holds.reopen(hold_ids=[hold])
            del self.model.charges[hold]
            self.compare()
            amount = CreditHold.objects.get(pk=hold).amount
            self._close(hold, cost=self.chance.randint(0, amount), is_home=is_home)

    def expire(self) -> None:
        expiry.expire(now=timezone.now())
        self.model.expired += self.model.left

    def _close(self, hold: int, *, cost: int, is_home: bool) -> None:
        holds.close(costs={hold: cost})
        if cost:
            self.model.charges[hold] = cost, is_home

    def compare(self) -> None:
        rows = CreditEntry.objects.filter(account__user=self.user).order_by("account_version")
        lots = Lots(Posting(*row) for row in rows.values_list(*POSTING))
        [first] = [lot for lot in lots if lot.source == EntrySource.FIRST_CREDITS]
        balance = CreditAccount.objects.get(user=self.user).balance
        assert (first.remaining, HomeCredits.objects.get().left) == (self.model.left, self.model.left)
        assert lots.given + lots.paid - lots.debt == balance == self.model.balance
        assert first.taken[EntrySource.CREDIT_EXPIRY] == self.model.expired


def _begin(chance: random.Random) -> History:
    user, first, now = UserFactory.create(), chance.randint(20, 150), timezone.now()
    lot = entries.grant(user=user, credits=first, source=EntrySource.FIRST_CREDITS, key=secrets.token_hex(16))
    ExpiringLot.objects.create(entry=lot, credits=first, expires_at=now)
    HomeCredits.objects.create(account=lot.account, credits=first, expires_at=now + timedelta(days=1))
    return History(chance, user, Model(first))


@pytest.mark.parametrize("seed", range(int(os.environ.get("FIRST_CREDITS_HISTORIES", "12"))))
def test_what_was_spent_never_expires_and_the_rest_does(seed: int) -> None:
    chance = random.Random(random.random() + seed)
    history = _begin(chance)
    moves = [
        lambda: history.grant(EntrySource.CHECK_IN),
        lambda: history.grant(EntrySource.CREDIT_PURCHASE),
        lambda: history.charge(elsewhere=False),
        lambda: history.charge(elsewhere=True),
        lambda: history.charge(elsewhere=True, paid_only=True),
        history.reverse,
    ]
    for number in range(40):
        chance.choice([*moves, history.expire] if number > 20 else moves)()
        history.compare()

    history.expire()
    history.compare()
    assert history.model.left == 0
    assert find_differences() == []
