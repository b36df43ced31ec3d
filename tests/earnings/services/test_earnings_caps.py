"""Caps and bonuses: what an event may be worth."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from credits.models import CreditEntry
from credits.queries import balance_of
from earnings.models import AdNetwork, Postback, PostbackState
from earnings.services import networks
from rewards.models import Badge, BadgeTrack, ModifierType
from rewards.services import experience, modifiers
from tests.earnings.ad_networks import issue_path_token, random_id, set_up
from tests.factories import UserFactory
from tests.threads import at_once

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def _holds() -> list[tuple[str, str, Any]]:
    return list(Postback.objects.order_by("pk").values_list("state", "hold_reason", "available_at"))


def _states() -> list[str]:
    return list(Postback.objects.order_by("pk").values_list("state", flat=True))


@pytest.mark.django_db
def test_an_event_above_the_cap_is_held_and_acknowledged() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", per_event_cap=100)

    results = [network.send(network.reward(user, amount=amount)).status for amount in ("101", "100")]

    assert results == [200, 200]
    assert _holds() == [("HELD", "EVENT_CAP", None), ("AVAILABLE", "", None)]
    assert balance_of(user).available == 100


@pytest.mark.django_db
def test_the_daily_cap_counts_one_users_credits_of_one_utc_day_at_one_network() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", daily_cap=100)
    times = [NOON, NOON, NOON, NOON.replace(hour=23, minute=59), NOON + timedelta(hours=12)]
    for amount, now in zip(["60", "41", "40", "1", "100"], times, strict=True):
        network.send(network.reward(user, amount=amount, at=now), now=now)

    above, within = ("HELD", "PERSON_CAP", None), ("AVAILABLE", "", None)
    assert _holds() == [within, above, within, above, within]
    assert balance_of(user).available == 200
    other = UserFactory.create()
    network.send(network.reward(other, amount="100"), now=NOON)
    assert balance_of(other).available == 100


@pytest.mark.django_db
def test_held_credits_count_and_reversed_ones_do_not() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", daily_cap=100, hold_hours=1)
    first = network.reward(user, amount="100")
    network.send(first)
    network.send(network.reward(user, amount="1"))
    network.send(network.reward(user, external_id=first.external_id, amount="100", is_reversal=True))
    network.send(network.reward(user, amount="100"))

    assert _states() == ["REVERSED", "HELD", "REVERSED", "HELD"]
    assert Postback.objects.filter(available_at=None, hold_reason="PERSON_CAP").count() == 1


def test_the_daily_cap_holds_for_simultaneous_postbacks(transactional_db: None) -> None:
    user, network = UserFactory.create(), set_up("tapjoy", daily_cap=100)
    rewards = [network.reward(user, amount="30") for _ in range(16)]

    at_once([partial(network.send, reward, now=NOON) for reward in rewards])

    assert balance_of(user).available == 90
    assert sorted(_states()) == ["AVAILABLE"] * 3 + ["HELD"] * 13


@pytest.mark.django_db
def test_an_amount_beyond_the_largest_integer_is_held() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", rate=Decimal(10**7))

    assert network.send(network.reward(user, amount="9" * 12)).status == 200

    assert _holds() == [("HELD", "EVENT_CAP", None)]
    assert not CreditEntry.objects.exists()


@pytest.mark.django_db
def test_less_than_a_credit_is_an_earning_without_an_entry() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", rate=Decimal("0.1"))
    reward = network.reward(user, amount="9")

    network.send(reward)
    network.send(network.reward(user, external_id=reward.external_id, amount="9", is_reversal=True))

    assert _states() == [PostbackState.REVERSED, PostbackState.REVERSED]
    assert not CreditEntry.objects.exists()


@pytest.mark.django_db
def test_badge_and_modifiers_raise_the_earning_and_stay_on_the_row() -> None:
    user, network = UserFactory.create(), set_up("adgem", rate=Decimal("1.5"))
    experience.gain(user=user, track=BadgeTrack.PERMANENT, base=6_000, key=random_id(), cause="test")
    badge = Badge.objects.get(track="PERMANENT", exp_lower_bound__lte=6_000, exp_upper_bound__gt=6_000)
    assert badge.bonus_creds_offerwall > 0
    for kind, value in (
        (ModifierType.BONUS_OFFERWALL_CREDITS, "0.1"),
        (ModifierType.BONUS_OFFERWALL_CREDITS, "0.05"),
        (ModifierType.BONUS_SURVEYS_CREDITS, "0.9"),
    ):
        modifiers.grant(
            user=user, modifier_type=kind, value=Decimal(value), minutes=9, key=random_id(), reason=""
        )

    network.send(network.reward(user, amount="333"))

    row = Postback.objects.get()
    assert (row.badge_bonus, row.modifier_bonus) == (badge.bonus_creds_offerwall, Decimal("0.15"))
    exact = Decimal(333) * Decimal("1.5") * (1 + row.badge_bonus + row.modifier_bonus)
    assert row.credits == int(exact)
    assert balance_of(user).available == int(exact)


_GUARDS: dict[str, Any] = {"allowed_addresses": ["203.0.113.7"], "hold_hours": 24}


@pytest.mark.django_db
@pytest.mark.parametrize("missing", [*_GUARDS, "token"])
def test_a_weak_network_cannot_be_enabled_without_limits(missing: str) -> None:
    if missing != "token":
        issue_path_token(slug="cpx-research")
    empty = {"allowed_addresses": [], "hold_hours": 0}
    guards = {**_GUARDS, **({} if missing == "token" else {missing: empty[missing]})}

    with pytest.raises(ValidationError, match="does not cover user, amount and id"):
        networks.configure(slug="cpx-research", is_enabled=True, **guards)
    row = networks.ensure(slug="cpx-research")
    assert not AdNetwork.objects.get(pk=row.pk).is_enabled
    with pytest.raises(IntegrityError, match="weak_is_guarded"), transaction.atomic():
        AdNetwork.objects.filter(pk=row.pk).update(is_enabled=True, **guards)
    if missing == "token":
        issue_path_token(slug="cpx-research")
    assert networks.configure(slug="cpx-research", **{**_GUARDS, "is_enabled": True}).is_enabled


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"allowed_addresses": ["0.0.0.0/0"]}, "no protection"),
        ({"allowed_addresses": ["203.0.113.7", "::/1"]}, "no protection"),
        # This number of hours exceeds the calendar.
        ({"hold_hours": 2**31 - 1}, "a year"),
        ({"hold_hours": 366 * 24 + 1}, "a year"),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(change: dict[str, Any], match: str) -> None:
    issue_path_token(slug="cpx-research")
    with pytest.raises(ValidationError, match=match):
        networks.configure(slug="cpx-research", **{**_GUARDS, "is_enabled": True, **change})
    assert not AdNetwork.objects.filter(is_enabled=True).exists()


@pytest.mark.django_db
def test_addresses_are_normalized_and_invalid_ones_refused() -> None:
    kept = networks.configure(slug="tapjoy", allowed_addresses=[" 2001:DB8:0::1", "203.0.113.0/28"])
    assert kept.allowed_addresses == ["2001:db8::1", "203.0.113.0/28"]

    for nonsense in ("example.org", "203.0.113.1/28", ""):
        with pytest.raises(ValidationError):
            networks.configure(slug="tapjoy", allowed_addresses=[nonsense])


@pytest.mark.django_db
def test_the_first_seconds_of_a_day_belong_to_it() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", daily_cap=100)
    midnight = NOON + timedelta(hours=12)
    for now in (midnight, midnight + timedelta(hours=23, minutes=59)):
        network.send(network.reward(user, amount="60", at=now), now=now)

    assert [row[:2] for row in _holds()] == [("AVAILABLE", ""), ("HELD", "PERSON_CAP")]
