"""No secret of one network makes credits without limit, and what exceeds a limit is held and not lost."""

import secrets
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import IntegrityError, transaction
from pytest_django import Settings

from credits.models import CreditEntry
from credits.queries import balance_of
from earnings.errors import EarningDecided
from earnings.models import AdNetwork, DailyEarnings, Postback
from earnings.services import earnings, networks
from gateway.staff import approvals
from gateway.staff.approval_kinds import AboveCeiling, OwnRequest
from gateway.staff.models import ApprovalRequest
from tests.earnings.ad_networks import set_up
from tests.factories import UserFactory
from tests.staff import member
from tests.threads import at_once

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def _reasons() -> list[tuple[str, str]]:
    return list(Postback.objects.order_by("pk").values_list("state", "hold_reason"))


def _request(row: Postback) -> ApprovalRequest:
    return earnings.request_release(
        postback_id=row.pk, actor=member("finance"), reason="x", key=secrets.token_hex(8)
    )


@pytest.mark.django_db
def test_a_signed_postback_of_any_size_makes_no_credits_alone(caplog: pytest.LogCaptureFixture) -> None:
    user, network = UserFactory.create(), set_up("tapjoy")

    for amount in ("1337500000000", "99999999", "1e22"):
        assert network.send(network.reward(user, amount=amount)).status == 200

    assert _reasons() == [("HELD", "EVENT_CAP")] * 3
    assert not CreditEntry.objects.exists()
    assert "above the network's cap per event" in caplog.text.lower()
    earnings.release_due(now=NOON + timedelta(days=3660))
    assert not CreditEntry.objects.exists()
    # Not even two people pass the ceiling.
    with pytest.raises(AboveCeiling):
        _request(Postback.objects.order_by("pk")[0])


@pytest.mark.django_db
def test_two_staff_members_release_credits_held_beyond_a_cap() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", per_event_cap=10)
    network.send(network.reward(user, amount="11"))
    row = Postback.objects.get()

    request = _request(row)

    assert (request.status, balance_of(user).available) == ("waiting", 0)
    with pytest.raises(OwnRequest):
        approvals.approve(request_id=request.pk, actor=request.requested_by, reason="x")
    approvals.approve(request_id=request.pk, actor=member("operations"), reason="x")
    assert balance_of(user).available == 11
    with pytest.raises(EarningDecided):
        _request(row)


@pytest.mark.django_db
def test_one_network_is_limited_to_its_daily_share_and_all_to_the_ceiling(
    settings: Settings,
) -> None:
    settings.EARNINGS_DAILY_CEILING, settings.EARNINGS_NETWORK_SHARE = 100, 60
    tapjoy, adgem = set_up("tapjoy"), set_up("adgem")
    sent = [(tapjoy, "60"), (tapjoy, "1"), (adgem, "41"), (adgem, "40"), (adgem, "1")]
    for network, amount in sent:
        network.send(network.reward(UserFactory.create(), amount=amount), now=NOON)

    assert _reasons() == [
        ("AVAILABLE", ""),
        ("HELD", "NETWORK_SHARE"),
        ("HELD", "DAILY_CEILING"),
        ("AVAILABLE", ""),
        ("HELD", "DAILY_CEILING"),
    ]
    day = dict(DailyEarnings.objects.values_list("scope", "credits"))
    assert day == {"": 100, "tapjoy": 60, "adgem": 40}
    # The next day begins anew.
    tapjoy.send(tapjoy.reward(UserFactory.create(), amount="60"), now=NOON + timedelta(hours=12))
    assert _reasons()[-1] == ("AVAILABLE", "")


def test_concurrent_earnings_of_many_users_never_exceed_the_ceiling(
    transactional_db: None, settings: Settings
) -> None:
    settings.EARNINGS_DAILY_CEILING, settings.EARNINGS_NETWORK_SHARE = 100, 100
    both = [set_up("tapjoy"), set_up("adgem")]
    rewards = [
        (network, network.reward(UserFactory.create(), amount="30")) for network in both for _ in range(8)
    ]

    at_once([partial(network.send, reward, now=NOON) for network, reward in rewards])

    assert sum(entry.amount for entry in CreditEntry.objects.all()) == 90
    assert DailyEarnings.objects.get(scope="").credits == 90
    assert sorted(_reasons()) == [("AVAILABLE", "")] * 3 + [("HELD", "DAILY_CEILING")] * 13


@pytest.mark.django_db
def test_every_network_has_caps(db: None) -> None:
    row = networks.ensure(slug="tapjoy")

    assert (row.per_event_cap, row.daily_cap) == (25_000, 50_000)
    for column in ("per_event_cap", "daily_cap"):
        for nothing in (None, 0):
            with pytest.raises(IntegrityError), transaction.atomic():
                AdNetwork.objects.filter(pk=row.pk).update(**{column: nothing})


@pytest.mark.django_db
def test_after_many_reversals_a_users_earnings_are_held_longer() -> None:
    user, other, network = UserFactory.create(), UserFactory.create(), set_up("tapjoy")
    for place in range(10):
        reward = network.reward(user, amount="10", at=NOON)
        network.send(reward, now=NOON)
        if place >= 2:
            back = network.reward(
                user, external_id=reward.external_id, amount="10", at=NOON, is_reversal=True
            )
            network.send(back, now=NOON)
    held = list(Postback.objects.filter(kind="CREDIT").exclude(hold_reason=""))
    # From the sixth on: five came before it, and three of them were taken back.
    assert {row.hold_reason for row in held} == {"REVERSALS"}
    assert {row.available_at for row in held} == {NOON + timedelta(days=14)}
    assert len(held) == 5

    for person in (user, other):
        network.send(network.reward(person, amount="7", at=NOON), now=NOON)

    assert (balance_of(user).available, balance_of(other).available) == (20, 7)
    assert earnings.release_due(now=NOON + timedelta(days=14)) == 1
    assert balance_of(user).available == 27
