"""A network's figures of today, seven days and thirty, in one statement."""

from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import DjangoAssertNumQueries as NumQueries

from earnings.models import Postback
from earnings.queries import NetworkTotals, totals_of
from tests.earnings.ad_networks import set_up
from tests.factories import UserFactory
from tests.staff import browser_of, member

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_each_period_counts_its_postbacks_by_state(django_assert_num_queries: NumQueries) -> None:
    user, network = UserFactory.create(), set_up("bitlabs", per_event_cap=100)
    other = set_up("tapjoy")
    other.send(other.reward(user))
    ages = [timedelta(hours=1), timedelta(hours=13), timedelta(days=8), timedelta(days=31)]
    for place, age in enumerate(ages):
        kept, lost, corrected = (network.reward(user, amount=str(10 + place)) for _ in range(3))
        for reward in (
            kept,
            lost,
            corrected,
            network.reward(user, amount="101"),
            network.reward(user, amount="0"),
        ):
            network.send(reward, now=NOW - age)
        for reward, amount in ((lost, lost.amount), (corrected, "4")):
            back = network.reward(user, external_id=reward.external_id, amount=amount, is_reversal=True)
            network.send(back, now=NOW - age)
    network.row.hold_hours = 5
    network.row.save()
    network.send(network.reward(user, amount="50"), now=NOW)

    with django_assert_num_queries(1):
        figures = totals_of(network.row, now=NOW)

    assert figures == [
        NetworkTotals("today", 2, 2, 1, 0, 30, 14),
        NetworkTotals("7 days", 4, 3, 2, 0, 30 + 33, 14 + 15),
        NetworkTotals("30 days", 6, 4, 3, 0, 30 + 33 + 36, 14 + 15 + 16),
    ]


def test_a_network_without_postbacks_has_figures_of_zero() -> None:
    assert totals_of(set_up("tapjoy").row, now=NOW) == [
        NetworkTotals(since, 0, 0, 0, 0, 0, 0) for since in ("today", "7 days", "30 days")
    ]


def test_the_figures_on_the_networks_page_take_one_statement(
    django_assert_max_num_queries: NumQueries,
) -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    browser = browser_of(member("support"))
    for _ in range(12):
        network.send(network.reward(user, amount="3"))
    assert Postback.objects.count() == 12

    with django_assert_max_num_queries(14):
        page = browser.get(f"/admin/earnings/adnetwork/{network.row.pk}/change/").content.decode()

    assert 'aria-label="Recently"' in page
    assert f'<td class="number">{12 * 3}</td>' in page
