"""Given credits expire after their announced time: paid and held ones never, and each once."""

import random
import secrets
from datetime import datetime, timedelta
from functools import partial

import pytest
from django.utils import timezone

from credits.lots import Lots, Posting
from credits.models import CreditAccount, CreditEntry, EntrySource, ExpiringLot, ExpiryRule
from credits.queries import POSTING
from credits.services import entries, expiry, holds
from credits.services.reconciliation import find_differences
from tests.credits.causes import causeless
from tests.credits.holding import place_hold
from tests.database import tamper
from tests.factories import UserFactory
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db
_DAYS = 90


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def rule(now: datetime) -> ExpiryRule:
    return ExpiryRule.objects.create(days=_DAYS, valid_from=now - timedelta(days=1_000))


def grant(credits: int, *, days_ago: float, user: User, source: str = EntrySource.SURVEYS) -> CreditEntry:
    key = f"test:{secrets.token_hex(8)}"
    entry = entries.grant(user=user, credits=credits, source=source, key=key)
    tamper(
        "UPDATE credits_entry SET created_at = now() - %s WHERE id = %s", timedelta(days=days_ago), entry.pk
    )
    return entry


def expired(user: User) -> list[int]:
    rows = CreditEntry.objects.filter(account__user=user, source=EntrySource.CREDIT_EXPIRY).order_by("pk")
    return list(rows.values_list("amount", flat=True))


def lots_of(user: User) -> Lots:
    rows = CreditEntry.objects.filter(account__user=user).order_by("account_version")
    return Lots(Posting(*row) for row in rows.values_list(*POSTING))


def test_given_credits_expire_after_their_announced_time(now: datetime, rule: ExpiryRule) -> None:
    user = UserFactory.create()
    lot = grant(70, days_ago=_DAYS - 13, user=user)
    grant(30, days_ago=1, user=user)

    assert (expiry.announce(now=now), expiry.announce(now=now)) == (1, 0)
    announced = ExpiringLot.objects.get()
    assert (announced.entry, announced.credits) == (lot, 70)
    assert announced.expires_at >= now + expiry.NOTICE
    assert expiry.expire(now=announced.expires_at - timedelta(seconds=1)) == 0
    assert expiry.expire(now=announced.expires_at) == 1
    assert expiry.expire(now=announced.expires_at + timedelta(days=1)) == 0

    assert expired(user) == [-70]
    assert {each.entry_id: each.remaining for each in lots_of(user)}[lot.pk] == 0
    assert not find_differences()
    assert causeless(EntrySource.CREDIT_EXPIRY) == []


def test_used_credits_do_not_expire_and_paid_credits_never_do(now: datetime, rule: ExpiryRule) -> None:
    user = UserFactory.create()
    grant(500, days_ago=400, user=user, source=EntrySource.SUBSCRIBED_PAYOUT)
    grant(70, days_ago=300, user=user)
    holds.close(costs={place_hold(user=user, credits=50, key="a").hold.pk: 50})

    expiry.announce(now=now)
    assert expiry.expire(now=now + timedelta(days=400)) == 1

    assert expired(user) == [-20]
    assert CreditAccount.objects.get(user=user).balance == 500


def test_held_credits_expire_when_their_hold_is_released(now: datetime, rule: ExpiryRule) -> None:
    user = UserFactory.create()
    grant(70, days_ago=300, user=user)
    expiry.announce(now=now)
    hold = place_hold(user=user, credits=45, key="a").hold
    later = now + timedelta(days=30)

    assert expiry.expire(now=later) == 1
    assert expired(user) == [-25]
    assert expiry.expire(now=later) == 0
    holds.release(hold_id=hold.pk)
    assert expiry.expire(now=later) == 1

    assert expired(user) == [-25, -45]
    assert CreditAccount.objects.get(user=user).balance == 0


def test_credits_that_return_to_an_expired_lot_expire_again(now: datetime, rule: ExpiryRule) -> None:
    user = UserFactory.create()
    grant(70, days_ago=300, user=user)
    expiry.announce(now=now)
    hold = place_hold(user=user, credits=45, key="a").hold
    holds.close(costs={hold.pk: 45})
    later = now + timedelta(days=30)
    expiry.expire(now=later)
    holds.reopen(hold_ids=[hold.pk])
    holds.release(hold_id=hold.pk)

    assert expiry.expire(now=later) == 1
    assert expired(user) == [-25, -45]


@pytest.mark.parametrize("days", [None, "no rule", "not yet"])
def test_nothing_expires_without_a_rule_in_force(now: datetime, days: object) -> None:
    user = UserFactory.create()
    lot = grant(70, days_ago=3_000, user=user)
    ExpiringLot.objects.create(entry=lot, credits=70, expires_at=now)
    if days != "no rule":
        begins = timedelta(days=1 if days == "not yet" else -1)
        ExpiryRule.objects.create(days=30 if days == "not yet" else None, valid_from=now + begins)

    assert (expiry.announce(now=now), expiry.expire(now=now)) == (0, 0)
    assert not expired(user)


@pytest.mark.django_db(transaction=True)
def test_concurrent_runs_and_uses_expire_nothing_twice() -> None:
    now = timezone.now()
    ExpiryRule.objects.create(days=_DAYS, valid_from=now - timedelta(days=1_000))
    users = [UserFactory.create() for _ in range(6)]
    for user in users:
        for _ in range(3):
            grant(random.randint(1, 90), days_ago=300, user=user)
        grant(100, days_ago=300, user=user, source=EntrySource.SUBSCRIBED_PAYOUT)
    expiry.announce(now=now)
    later = now + timedelta(days=30)

    def run(number: int) -> None:
        if number % 2:
            expiry.expire(now=later)
        else:
            for user in users:
                holds.close(costs={place_hold(user=user, credits=2, key=f"{number}:{user.pk}").hold.pk: 2})

    at_once([partial(run, number) for number in range(6)])
    expiry.expire(now=later)

    assert not find_differences()
    for user in users:
        lots = lots_of(user)
        assert lots.given == 0
        assert 100 - 6 <= lots.paid <= 100
        assert sum(lot.taken[EntrySource.CREDIT_EXPIRY] for lot in lots if lot.is_paid) == 0
