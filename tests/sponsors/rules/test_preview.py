"""A preview applies terms to past calls as if they had begun with the first, and decides nothing that is unknown."""

import random
from datetime import timedelta
from typing import Any

import pytest

from sponsors.rules.calls import Action
from sponsors.rules.policies import Holding, Limits, Profiles, Purpose, Target
from sponsors.rules.preview import PastCall, Preview, preview
from tests.factories import random_address
from tests.sponsors.rules.rows import CHAIN, NOW, policy, random_function


def past(minute: int = 0, **values: Any) -> PastCall:
    """Return a call at a minute, with random values but for these."""
    cost = random.randint(1, 100)
    usual: dict[str, Any] = {
        "chain_id": CHAIN,
        "at": NOW + timedelta(minutes=minute),
        "profile": random_address(),
        "actions": (Action(random_address(), random_function()),),
        "credits": 2 * cost,
        "cost": cost,
        "gas_price_wei": 10**9,
        "profile_since": NOW - timedelta(days=1),
    }
    return PastCall(**usual | values)


def of(terms: Any, *calls: PastCall, listed: frozenset[str] = frozenset()) -> tuple[Any, ...]:
    """Return the outcome as calls, paid, credits, undecided and refusals."""
    outcome: Preview = preview(terms, calls, listed=listed)
    return outcome.calls, outcome.paid, outcome.credits, outcome.undecided, dict(outcome.refusals)


def test_without_calls_nothing_is_paid() -> None:
    assert of(policy()) == (0, 0, 0, 0, {})


def test_the_sponsor_pays_its_share_of_the_costs_and_each_refusal_is_counted_by_its_rule() -> None:
    contract, share = random_address(), random.randint(1, 99)
    inside = [past(actions=(Action(contract, random_function()),)) for _ in range(3)]
    outside = [past(), past(actions=None)]
    terms = policy(targets=(Target(contract),), share_percent=share)
    spent = sum(-(-call.cost * share // 100) for call in inside)
    assert of(terms, *inside, *outside) == (
        5,
        3,
        spent,
        0,
        {"sponsor-target": 1, "sponsor-unreadable": 1},
    )


def test_limits_begin_unused_and_count_the_calls_before_by_what_they_cost() -> None:
    one, other = random_address(), random_address()
    calls = [past(minute, profile=one, credits=20, cost=10) for minute in range(4)]
    terms = policy(limits=Limits(user_calls=2))
    assert of(terms, *reversed(calls), past(9, profile=other, cost=7)) == (
        5,
        3,
        27,
        0,
        {"sponsor-limit-user-calls": 2},
    )
    # The highest cost must fit beside what the calls before cost: 10 + 10 + 20 does not.
    assert of(policy(limits=Limits(user_total=39)), *calls)[1:3] == (2, 20)
    assert of(policy(limits=Limits(campaign=39)), *calls)[4] == {"sponsor-limit-campaign": 2}
    assert of(policy(limits=Limits(campaign_calls=3)), *calls)[1] == 3
    # A window that lasts from 2024 to 2035.
    window = Limits(window_calls=3, window_seconds=4_000 * 86_400)
    assert of(policy(limits=window), *calls)[4] == {"sponsor-limit-window-calls": 1}
    assert of(policy(limits=Limits(call=19)), *calls)[4] == {"sponsor-limit-call": 4}


def test_days_and_windows_are_those_of_the_calls() -> None:
    one = random_address()
    days = [past(profile=one, at=NOW + timedelta(days=day), credits=10, cost=10) for day in range(3)]
    assert of(policy(limits=Limits(user_day=10)), *days)[1] == 3
    assert of(policy(limits=Limits(window=10, window_seconds=86_400)), *days)[1] == 3
    assert of(policy(limits=Limits(window=10, window_seconds=86_400 * 400)), *days)[1] < 3


def test_the_terms_count_as_begun_with_the_first_call() -> None:
    later = NOW + timedelta(days=30)
    calls = [past(), past(1)]
    assert of(policy(starts_at=later), *calls)[1] == 2
    assert of(policy(ends_at=NOW - timedelta(days=1)), *calls)[1] == 2
    new = policy(profiles=Profiles.NEW, new_since=later)
    before, after = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)
    newcomer = past(1, profile_since=after)
    assert of(new, past(profile_since=before), newcomer) == (2, 1, newcomer.cost, 0, {"sponsor-profile": 1})


def test_a_call_whose_profile_began_at_an_unknown_time_is_undecided_unless_another_rule_refuses_it() -> None:
    new = policy(profiles=Profiles.NEW, new_since=NOW, gas_price_ceiling_wei=10**9)
    unknown, dear = past(profile_since=None), past(1, profile_since=None, gas_price_wei=10**9 + 1)
    assert of(new, unknown, dear) == (2, 0, 0, 1, {"sponsor-gas-price": 1})
    assert of(policy(), unknown)[1] == 1


@pytest.mark.parametrize("rule", [Profiles.HOLDING, Profiles.FOLLOWED, Profiles.FOLLOWER])
def test_tokens_follows_and_vouchers_are_assumed(rule: Profiles) -> None:
    held = policy(profiles=rule, holding=Holding(rule, random_address()))
    assert of(held, past())[1] == 1
    assert of(policy(profiles=Profiles.VOUCHED), past())[1] == 1
    assert of(policy(profiles=Profiles.VERIFIED), past())[1] == 1


def test_terms_for_calls_pay_for_no_new_profile() -> None:
    new_profile = past(purpose=Purpose.PROFILES)
    assert of(policy(), past(), new_profile)[4] == {"sponsor-purpose": 1}
    assert of(policy(purpose=Purpose.PROFILES), past(), new_profile)[2] == new_profile.cost


def test_listed_profiles_are_compared() -> None:
    call = past()
    terms = policy(profiles=Profiles.LISTED)
    assert of(terms, call, listed=frozenset({call.profile}))[1] == 1
    assert of(terms, call, listed=frozenset({random_address()}))[4] == {"sponsor-profile": 1}
