"""The effect of another rate of a network: on an amount, and on the earnings of thirty days."""

import random
import secrets
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from pytest_django import DjangoAssertNumQueries as NumQueries

from earnings.models import AdNetwork, Postback
from earnings.queries import Worth, rate_effect
from gateway.common.fields import SAFE_INTEGER_MAX
from rewards.models import ModifierType
from rewards.services import modifiers
from tests.earnings.ad_networks import Network, set_up
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def with_rate(network: Network, rate: str, **values: object) -> AdNetwork:
    """Return the network's row as a form would have it, not stored."""
    row = AdNetwork.objects.get(pk=network.row.pk)
    row.rate = Decimal(rate)
    for name, value in values.items():
        setattr(row, name, value)
    return row


def earn(network: Network, *amounts: str, age: timedelta = timedelta(hours=1)) -> None:
    for amount in amounts:
        network.send(network.reward(UserFactory.create(), amount=amount), now=NOW - age)


def test_amounts_become_whole_credits_rounded_down() -> None:
    network = set_up("bitlabs", rate=Decimal("2.5"))
    effect = rate_effect(network=with_rate(network, "0.0199"), before=Decimal("2.5"), now=NOW)
    assert effect.worths == [Worth(1, 2, 0), Worth(10, 25, 0), Worth(100, 250, 1), Worth(1_000, 2_500, 19)]
    assert (effect.before, effect.rate) == (Decimal("2.5"), Decimal("0.0199"))
    assert (effect.earnings, effect.given, effect.after, effect.above_cap) == (0, 0, 0, 0)


def test_earnings_of_thirty_days_are_counted_at_the_new_rate_each_rounded_down(
    django_assert_num_queries: NumQueries,
) -> None:
    network, other = set_up("bitlabs"), set_up("tapjoy")
    earn(network, "7", "8.5")
    earn(network, "3", age=timedelta(days=29, hours=23))
    earn(network, "1000", age=timedelta(days=30, hours=1))
    earn(other, "500")
    before = list(Postback.objects.order_by("pk").values())
    changed = with_rate(network, "1.5")
    with django_assert_num_queries(1):
        effect = rate_effect(network=changed, before=Decimal(1), now=NOW)
    assert (effect.earnings, effect.given) == (3, 7 + 8 + 3)
    assert effect.after == 10 + 12 + 4
    assert list(Postback.objects.order_by("pk").values()) == before
    assert AdNetwork.objects.get(slug="bitlabs").rate == 1


def test_held_earnings_count_and_reversed_or_refused_ones_do_not() -> None:
    network, user = set_up("bitlabs", per_event_cap=100), UserFactory.create()
    reversed_one, large = network.reward(user, amount="10"), network.reward(user, amount="101")
    reversal = network.reward(
        user, external_id=reversed_one.external_id, amount=reversed_one.amount, is_reversal=True
    )
    for reward in (
        reversed_one,
        reversal,
        large,
        network.reward(user, amount="0"),
        network.reward(user, amount="5"),
    ):
        network.send(reward, now=NOW)
    network.row.hold_hours = 5
    network.row.save()
    network.send(network.reward(user, amount="20"), now=NOW)
    effect = rate_effect(network=with_rate(network, "2"), before=Decimal(1), now=NOW)
    assert (effect.earnings, effect.given, effect.after) == (2, 25, 50)


def test_each_earning_keeps_the_bonus_that_it_had() -> None:
    network, user = set_up("bitlabs"), UserFactory.create()
    modifiers.grant(
        user=user,
        modifier_type=ModifierType.BONUS_SURVEYS_CREDITS,
        value=Decimal("0.25"),
        minutes=5,
        key=secrets.token_hex(8),
        reason="",
    )
    network.send(network.reward(user, amount="10"), now=NOW)
    postback = Postback.objects.get()
    bonus = 1 + postback.badge_bonus + postback.modifier_bonus
    assert bonus >= Decimal("1.25")
    effect = rate_effect(network=with_rate(network, "3"), before=Decimal(1), now=NOW)
    assert (effect.given, effect.after) == (postback.credits, int(10 * 3 * bonus))


def test_earnings_above_the_cap_are_counted_apart() -> None:
    network, cap = set_up("bitlabs"), random.randint(20, 99)
    earn(network, "1", str(cap), str(cap + 1))
    effect = rate_effect(network=with_rate(network, "1", per_event_cap=cap), before=Decimal(1), now=NOW)
    assert (effect.earnings, effect.after, effect.above_cap) == (3, 1 + cap, 1)
    effect = rate_effect(network=with_rate(network, "2", per_event_cap=cap), before=Decimal(1), now=NOW)
    assert (effect.after, effect.above_cap) == (2, 2)


def test_an_absurd_rate_shows_its_effect() -> None:
    network = set_up("bitlabs", rate=Decimal("0.00001"))
    earn(network, "0.00000001", str(10**9))
    effect = rate_effect(network=with_rate(network, "99999999"), before=Decimal(1), now=NOW)
    assert SAFE_INTEGER_MAX < 99_999_999 * 10**9
    assert (effect.after, effect.above_cap) == (0, 1)
