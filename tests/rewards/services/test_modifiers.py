"""Modifiers: in force for their minutes by the database's clock, given once per key."""

import random
import secrets
from datetime import timedelta
from decimal import Decimal
from functools import partial

import pytest
from django.db import DatabaseError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from credits.errors import KeyConflict
from gateway.staff.approval_kinds import AboveCeiling
from gateway.staff.models import ApprovalRequest
from rewards.errors import ModifierEnded
from rewards.models import MAX_MODIFIER_SUM, Modifier, ModifierType
from rewards.queries import current_rewards
from rewards.services import modifiers
from tests.factories import UserFactory
from tests.staff import member
from tests.threads import waits_for_this_transaction
from users.models import User

pytestmark = pytest.mark.django_db


def give(user: User, *, kind: ModifierType, value: str = "0.05", key: str | None = None) -> Modifier:
    return modifiers.grant(
        user=user,
        modifier_type=kind,
        value=Decimal(value),
        minutes=random.randint(1, 999),
        key=key or secrets.token_hex(8),
        reason="for a test",
    )


def active(user: User) -> list[Modifier]:
    return current_rewards(user=user, now=timezone.now()).modifiers


@pytest.mark.parametrize("kind", ModifierType)
def test_a_modifier_adds_to_the_badge_while_it_is_active(user: User, kind: ModifierType) -> None:
    before = current_rewards(user=user, now=timezone.now()).benefits
    given = give(user, kind=kind, value="0.0525")
    after = current_rewards(user=user, now=timezone.now()).benefits
    assert {other: after.bonus(other) - before.bonus(other) for other in ModifierType} == {
        other: Decimal("0.0525") if other == kind else 0 for other in ModifierType
    }
    assert active(user) == [given]


def test_a_key_of_another_user_or_type_is_refused(user: User, key: str) -> None:
    first = give(user, kind=ModifierType.BONUS_CREDITS_BACK, key=key)
    for owner, kind in (
        (UserFactory.create(), ModifierType.BONUS_CREDITS_BACK),
        (user, ModifierType.BONUS_SURVEYS_CREDITS),
    ):
        with pytest.raises(KeyConflict):
            give(owner, kind=kind, key=key)
    assert list(Modifier.objects.all()) == [first]


def test_a_modifier_lasts_its_minutes(user: User) -> None:
    given = modifiers.grant(
        user=user,
        modifier_type=ModifierType.BONUS_PUSH_ADS_CREDITS,
        value=Decimal("0.1"),
        minutes=90,
        key=secrets.token_hex(8),
        reason="",
    )
    assert given.expires_at - given.created_at == timedelta(minutes=90)


def test_ended_and_future_modifiers_do_not_count(user: User) -> None:
    ended, ahead = (give(user, kind=ModifierType.BONUS_SURVEYS_CREDITS) for _ in range(2))
    Modifier.objects.filter(pk=ended.pk).update(created_at=Now() - timedelta(hours=1), expires_at=Now())
    Modifier.objects.filter(pk=ahead.pk).update(
        created_at=Now() + timedelta(hours=1), expires_at=Now() + timedelta(hours=2)
    )
    assert active(user) == []


def test_modifiers_of_a_type_add_up_to_the_cap(user: User) -> None:
    for value in ("0.6", "0.3", "0.3"):
        give(user, kind=ModifierType.BONUS_OFFERWALL_CREDITS, value=value)
    benefits = current_rewards(user=user, now=timezone.now()).benefits
    assert benefits.modifier_bonuses[ModifierType.BONUS_OFFERWALL_CREDITS] == MAX_MODIFIER_SUM
    assert benefits.modifier_bonuses[ModifierType.BONUS_SURVEYS_CREDITS] == 0


def test_each_modifier_is_shown_with_its_effective_bonus_under_the_cap(user: User) -> None:
    first = give(user, kind=ModifierType.BONUS_OFFERWALL_CREDITS, value="0.6")
    large = give(user, kind=ModifierType.BONUS_OFFERWALL_CREDITS, value="10")
    last = give(user, kind=ModifierType.BONUS_OFFERWALL_CREDITS, value="0.1")
    alone = give(user, kind=ModifierType.BONUS_SURVEYS_CREDITS, value="10")
    rewards = current_rewards(user=user, now=timezone.now())
    assert rewards.counted_modifiers == [
        (first, Decimal("0.6")), (large, Decimal("0.4")), (last, Decimal(0)), (alone, MAX_MODIFIER_SUM)
    ]  # fmt: skip
    assert "+100 %" in str(alone)
    for kind, total in rewards.benefits.modifier_bonuses.items():
        assert total == sum(
            counted for row, counted in rewards.counted_modifiers if row.modifier_type == kind
        )


def test_a_modifier_beyond_the_cap_is_refused_even_with_approval(user: User, key: str) -> None:
    with pytest.raises(AboveCeiling, match="at most 100 %"):
        modifiers.request(
            user=user, modifier_type=ModifierType.BONUS_CREDITS_BACK, value=Decimal("1.0001"), minutes=1, key=key,
            reason="x", actor=member("superuser"),
        )  # fmt: skip
    assert not ApprovalRequest.objects.exists()
    assert not Modifier.objects.exists()


def test_a_repeated_key_gives_once(user: User, key: str) -> None:
    first = give(user, kind=ModifierType.BONUS_CREDITS_BACK, key=key)
    assert give(user, kind=ModifierType.BONUS_CREDITS_BACK, value="0.9", key=key) == first
    assert Modifier.objects.get().value == Decimal("0.05")


@pytest.mark.parametrize(("value", "minutes"), [("0", 5), ("-0.1", 5), ("0.1", 0)])
def test_a_modifier_that_adds_nothing_is_refused(user: User, value: str, minutes: int) -> None:
    with pytest.raises(ValueError, match="needs a positive value and duration"):
        modifiers.grant(
            user=user,
            modifier_type=ModifierType.BONUS_CREDITS_BACK,
            value=Decimal(value),
            minutes=minutes,
            key=secrets.token_hex(8),
            reason="",
        )
    assert not Modifier.objects.exists()


def test_an_ended_modifier_adds_nothing_from_now_on_and_the_others_stay(user: User) -> None:
    other = UserFactory.create()
    mistaken, kept = (
        give(user, kind=ModifierType.BONUS_SURVEYS_CREDITS, value=value) for value in ("1", "0.1")
    )
    theirs = give(other, kind=ModifierType.BONUS_SURVEYS_CREDITS)
    modifiers.end(modifier_id=mistaken.pk)
    assert (active(user), active(other)) == ([kept], [theirs])
    benefits = current_rewards(user=user, now=timezone.now()).benefits
    assert benefits.modifier_bonuses[ModifierType.BONUS_SURVEYS_CREDITS] == Decimal("0.1")
    row = Modifier.objects.get(pk=mistaken.pk)
    assert row.created_at < row.expires_at < mistaken.expires_at
    assert (row.value, row.reason, row.key) == (mistaken.value, mistaken.reason, mistaken.key)


def test_an_ended_modifier_stays_unchanged(user: User) -> None:
    ended, expired = (give(user, kind=ModifierType.BONUS_CREDITS_BACK) for _ in range(2))
    modifiers.end(modifier_id=ended.pk)
    Modifier.objects.filter(pk=expired.pk).update(
        created_at=Now() - timedelta(hours=1), expires_at=Now() - timedelta(minutes=1)
    )
    before = list(Modifier.objects.order_by("pk").values())
    for gone in (ended.pk, expired.pk, expired.pk + 1):
        with pytest.raises(ModifierEnded):
            modifiers.end(modifier_id=gone)
    assert list(Modifier.objects.order_by("pk").values()) == before


def test_the_second_of_two_concurrent_ends_is_refused_as_already_ended(
    transactional_db: None, user: User
) -> None:
    given = give(user, kind=ModifierType.BONUS_CREDITS_BACK)
    with waits_for_this_transaction(
        partial(modifiers.end, modifier_id=given.pk), in_transaction=True
    ) as second:
        modifiers.end(modifier_id=given.pk)
        ended_at = Modifier.objects.get(pk=given.pk).expires_at
    assert isinstance(second.result(), ModifierEnded)
    assert Modifier.objects.get(pk=given.pk).expires_at == ended_at


def test_the_database_refuses_a_window_that_ends_before_it_begins(user: User) -> None:
    given = give(user, kind=ModifierType.BONUS_CREDITS_BACK)
    with pytest.raises(DatabaseError, match="expires_after_creation"), transaction.atomic():
        Modifier.objects.filter(pk=given.pk).update(expires_at=given.created_at)


def test_only_modifiers_that_ended_long_ago_are_purged(user: User) -> None:
    old, recent, running = (give(user, kind=ModifierType.BONUS_CREDITS_BACK) for _ in range(3))
    for row, days in ((old, 91), (recent, 89)):
        Modifier.objects.filter(pk=row.pk).update(
            created_at=Now() - timedelta(days=100), expires_at=Now() - timedelta(days=days)
        )
    assert modifiers.purge() == 1
    assert set(Modifier.objects.all()) == {recent, running}
