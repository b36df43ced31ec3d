"""Experience on both tracks: grown, taken back, once per key."""

import random
import secrets
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from credits.errors import KeyConflict
from credits.services import entries
from rewards.models import Badge, BadgeTrack, ExperienceEntry
from rewards.services import experience
from tests.credits.rows import query
from tests.factories import UserFactory
from tests.rewards.rows import experience_of
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


def totals(user: User) -> dict[str, int]:
    permanent, subscriber = experience_of(user)
    return {BadgeTrack.PERMANENT: permanent, BadgeTrack.SUBSCRIBER: subscriber}


@pytest.mark.parametrize("track", BadgeTrack)
def test_experience_of_one_track_leaves_the_other_alone(user: User, key: str, track: BadgeTrack) -> None:
    base = random.randint(1, 999)
    entry = experience.gain(user=user, track=track, base=base, key=key, cause="TEST")
    assert (entry.base, entry.amount, entry.total_after) == (base, base, base)
    assert totals(user) == {other: base if other == track else 0 for other in BadgeTrack}


def test_an_account_is_opened_for_the_first_experience(key: str) -> None:
    newcomer = UserFactory.create()
    experience.gain(user=newcomer, track=BadgeTrack.PERMANENT, base=7, key=key, cause="TEST")
    assert totals(newcomer)[BadgeTrack.PERMANENT] == 7


@pytest.mark.parametrize("track", BadgeTrack)
def test_the_badge_before_the_gain_decides_its_multiplier(user: User, track: BadgeTrack) -> None:
    lowest, second = Badge.objects.filter(track=track)[:2]
    rate = Decimal(random.randint(10_001, 30_000)) / 10_000
    Badge.objects.filter(pk=second.pk).update(exp_growth_rate=rate)
    assert lowest.exp_upper_bound is not None
    first = experience.gain(
        user=user, track=track, base=lowest.exp_upper_bound, key=secrets.token_hex(8), cause="TEST"
    )
    assert first.amount == lowest.exp_upper_bound
    base = random.randint(1, 999)
    grown = experience.gain(user=user, track=track, base=base, key=secrets.token_hex(8), cause="TEST")
    assert grown.amount == int(base * rate)
    assert totals(user)[track] == first.amount + grown.amount


def test_a_database_without_badges_grows_at_one(user: User, key: str) -> None:
    Badge.objects.all().delete()
    assert experience.gain(user=user, track=BadgeTrack.PERMANENT, base=9, key=key, cause="TEST").amount == 9


def test_a_repeated_key_posts_once(user: User, key: str) -> None:
    first = experience.gain(user=user, track=BadgeTrack.PERMANENT, base=5, key=key, cause="TEST")
    again = experience.gain(user=user, track=BadgeTrack.PERMANENT, base=6, key=key, cause="TEST")
    assert again == first
    assert totals(user)[BadgeTrack.PERMANENT] == 5


def test_a_key_that_names_something_else_is_refused(user: User, key: str) -> None:
    experience.gain(user=user, track=BadgeTrack.PERMANENT, base=5, key=key, cause="TEST")
    before = list(ExperienceEntry.objects.values())
    other = UserFactory.create()
    for owner, track in ((other, BadgeTrack.PERMANENT), (user, BadgeTrack.SUBSCRIBER)):
        with pytest.raises(KeyConflict):
            experience.gain(user=owner, track=track, base=5, key=key, cause="TEST")
    with pytest.raises(KeyConflict):
        experience.take_back(user=user, track=BadgeTrack.PERMANENT, amount=5, key=key, cause="TEST")
    assert list(ExperienceEntry.objects.values()) == before
    assert totals(user)[BadgeTrack.PERMANENT] == 5


def test_taking_back_never_makes_experience_negative(user: User, key: str) -> None:
    experience.gain(user=user, track=BadgeTrack.PERMANENT, base=5, key=key, cause="TEST")
    taken = experience.take_back(
        user=user, track=BadgeTrack.PERMANENT, amount=8, key=f"back:{key}", cause="TEST"
    )
    assert (taken.base, taken.amount, taken.total_after) == (-8, -5, 0)
    assert totals(user)[BadgeTrack.PERMANENT] == 0


def test_taking_back_applies_no_multiplier(user: User, key: str) -> None:
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(exp_growth_rate=2)
    gained = experience.gain(user=user, track=BadgeTrack.PERMANENT, base=5, key=key, cause="TEST")
    assert gained.amount == 10
    experience.take_back(user=user, track=BadgeTrack.PERMANENT, amount=4, key=f"back:{key}", cause="TEST")
    assert totals(user)[BadgeTrack.PERMANENT] == 6


def test_restored_experience_is_not_multiplied_again(user: User, key: str) -> None:
    Badge.objects.filter(track=BadgeTrack.SUBSCRIBER).update(exp_growth_rate=3)
    again: dict[str, Any] = {
        "user": user,
        "track": BadgeTrack.SUBSCRIBER,
        "amount": 4,
        "key": key,
        "cause": "TEST",
    }
    entry = experience.restore(**again)
    assert (entry.base, entry.amount, entry.total_after) == (4, 4, 4)
    assert experience.restore(**again) == entry
    assert totals(user) == {BadgeTrack.SUBSCRIBER: 4, BadgeTrack.PERMANENT: 0}


@pytest.mark.parametrize("amount", [0, -1])
def test_zero_is_neither_a_gain_nor_a_loss(user: User, key: str, amount: int) -> None:
    with pytest.raises(ValueError, match="positive"):
        experience.gain(user=user, track=BadgeTrack.PERMANENT, base=amount, key=key, cause="TEST")
    with pytest.raises(ValueError, match="positive"):
        experience.take_back(user=user, track=BadgeTrack.PERMANENT, amount=amount, key=key, cause="TEST")
    with pytest.raises(ValueError, match="positive"):
        experience.restore(user=user, track=BadgeTrack.PERMANENT, amount=amount, key=key, cause="TEST")
    assert not ExperienceEntry.objects.exists()


def test_entries_are_append_only(user: User, key: str) -> None:
    entry = experience.gain(user=user, track=BadgeTrack.PERMANENT, base=5, key=key, cause="TEST")
    for change in (
        lambda: ExperienceEntry.objects.filter(pk=entry.pk).update(amount=6),
        lambda: ExperienceEntry.objects.filter(pk=entry.pk).delete(),
    ):
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            change()
    assert ExperienceEntry.objects.get().amount == 5


@pytest.mark.django_db(transaction=True)
def test_simultaneous_gains_all_count_and_equal_ones_count_once(key: str) -> None:
    user = UserFactory.create()
    entries.open_account(user_id=user.pk)
    bases = [random.randint(1, 50) for _ in range(8)]

    def gain(number: int) -> None:
        for name, base in (("same", 100), (str(number), bases[number])):
            experience.gain(
                user=user, track=BadgeTrack.SUBSCRIBER, base=base, key=f"{key}:{name}", cause="TEST"
            )

    at_once([partial(gain, number) for number in range(8)], in_transaction=True)
    assert totals(user)[BadgeTrack.SUBSCRIBER] == 100 + sum(bases)
    assert query("SELECT sum(amount), max(total_after) FROM rewards_experience") == [
        (100 + sum(bases), 100 + sum(bases))
    ]
