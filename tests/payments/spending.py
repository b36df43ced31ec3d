"""Calls of many people through the ledger, and what has to come back of them, computed apart in fractions."""

import random
import secrets
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import count
from math import floor

from django.db import transaction

from credits.errors import InsufficientCredits
from credits.models import Allowance, CreditEntry
from rewards.models import CREDIT_PARTS, Badge, BadgeTrack, Modifier, ModifierType, Progress
from rewards.services import cashback, experience, modifiers
from tests.credits.holding import place_hold
from users.models import User

_DEBT_LIMIT = 10**6


class Spending:
    """
    What people spend on calls, in blocks; some blocks are undone and settled again at another cost.

    The fractions are four random decimals, of badges and modifiers. What should come back is kept here as exact
    fractions, of badges looked up by hand in the rows as they are before each block.
    """

    def __init__(self, users: Sequence[User]) -> None:
        self.users = users
        self.modifiers: dict[int, list[Modifier]] = defaultdict(list)
        self.costs: dict[int, tuple[int, int]] = {}
        self.due: dict[int, Fraction] = {}
        self.undone = 0
        self._numbers = count()
        experience.open_progress(user_ids=[user.pk for user in users])
        for badge in Badge.objects.all():
            badge.credits_back_percent = _fraction(900)
            badge.save(update_fields=["credits_back_percent"])

    def make_calls(self, now: datetime) -> None:
        """Let many people make a call each, settled as one block; now and then the block is undone first."""
        for user in random.sample(self.users, max(1, len(self.users) // 20)):
            self._change_modifiers(user)
        callers = random.sample(self.users, random.randint(1, max(1, len(self.users) // 2)))
        held = {user.pk: self._hold(user) for user in callers}
        owners = {hold: user_id for user_id, hold in held.items() if hold is not None}
        self._settle(owners, now)
        if random.random() < 0.2:
            with transaction.atomic():
                cashback.reverse(hold_ids=list(owners))
            self.undone += len(owners)
            self._settle(owners, now)

    def _change_modifiers(self, user: User) -> None:
        if active := self.modifiers[user.pk]:
            modifiers.end(modifier_id=active.pop().pk)
            return
        granted = modifiers.grant(
            user=user,
            modifier_type=ModifierType.BONUS_CREDITS_BACK,
            value=_fraction(9_999),
            minutes=60 * 24,
            key=secrets.token_hex(8),
            reason="",
        )
        active.append(granted)

    def _hold(self, user: User) -> int | None:
        """Return the hold; None for a person who owes what was kept of them."""
        key = f"call:{next(self._numbers)}"
        with suppress(InsufficientCredits):
            return place_hold(user=user, credits=500, key=key, debt_limit=_DEBT_LIMIT).hold.pk
        return None

    def _settle(self, owners: dict[int, int], now: datetime) -> None:
        costs = {hold_id: random.randint(1, 400) for hold_id in owners}
        subscribed = {row.user_id for row in Allowance.objects.all() if _runs(row, now)}
        before = {row.user_id: row for row in Progress.objects.filter(user_id__in=owners.values())}
        levels = {track: list(Badge.objects.filter(track=track)) for track in BadgeTrack}
        with transaction.atomic():
            cashback.settle(costs=costs, now=now)
        for hold_id, user_id in owners.items():
            row = before[user_id]
            permanent = _badge(levels[BadgeTrack.PERMANENT], row.permanent_experience)
            gained = row.permanent_experience + floor(costs[hold_id] * Fraction(permanent.exp_growth_rate))
            badges = [_badge(levels[BadgeTrack.PERMANENT], gained)]
            if user_id in subscribed:
                badges.append(_badge(levels[BadgeTrack.SUBSCRIBER], row.subscriber_experience))
            fractions = [badge.credits_back_percent for badge in badges]
            fractions += [modifier.value for modifier in self.modifiers[user_id]]
            self.costs[hold_id] = (user_id, costs[hold_id])
            self.due[hold_id] = costs[hold_id] * min(Fraction(1), Fraction(sum(fractions)))

    def assert_exact(self, user: User) -> int:
        """Compare what came back with the exact sum; return what the calls changed the balance by."""
        own = [hold_id for hold_id, (user_id, _) in self.costs.items() if user_id == user.pk]
        due = sum((self.due[hold_id] for hold_id in own), Fraction(0))
        back = CreditEntry.objects.filter(account__user=user, key__contains="back:")
        came_back = sum(back.values_list("amount", flat=True))
        remainder = Progress.objects.get(user=user).cashback_remainder
        assert came_back == floor(due)
        assert Fraction(remainder, CREDIT_PARTS) == due - floor(due)
        return came_back - sum(self.costs[hold_id][1] for hold_id in own)


def _runs(allowance: Allowance, now: datetime) -> bool:
    grace = timedelta(hours=72 if allowance.renews else 0)
    return allowance.starts_at <= now < allowance.ends_at + grace


def _fraction(most: int) -> Decimal:
    return Decimal(random.randint(1, most)) / CREDIT_PARTS


def _badge(levels: Sequence[Badge], experience: int) -> Badge:
    [badge] = [
        row
        for row in levels
        if row.exp_lower_bound <= experience
        and (row.exp_upper_bound is None or experience < row.exp_upper_bound)
    ]
    return badge
