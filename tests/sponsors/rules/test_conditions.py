"""A policy pays for its targets, profiles, times and gas prices, and for nothing beside them."""

import secrets
from datetime import timedelta

import pytest

from sponsors.errors import PolicyRefused
from sponsors.rules.calls import DELEGATECALL, DEPLOYMENT, NO_FUNCTION, PROFILE, Action
from sponsors.rules.choosing import Decision, decide
from sponsors.rules.policies import Facts, Limits, PolicyVersion, Profiles, Target, Usage
from tests.factories import random_address
from tests.sponsors.rules.rows import CHAIN, NOW, facts, policy, random_function, voucher

_MOMENT = timedelta(microseconds=1)
_CEILING = 10**9 + secrets.randbelow(10**12)


def _decided(version: PolicyVersion, call: Facts) -> Decision:
    return decide([version], call, {})


def _refused(version: PolicyVersion, call: Facts) -> str:
    decision = _decided(version, call)
    assert (decision.paid_by, decision.sponsor_credits, decision.user_credits) == (None, 0, call.credits)
    assert decision.error().status == 403
    return decision.error().code


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (-_MOMENT, "sponsor-not-started"),
        (timedelta(0), None),
        (timedelta(hours=1) - _MOMENT, None),
        (timedelta(hours=1), "sponsor-ended"),
        (timedelta(hours=1) + _MOMENT, "sponsor-ended"),
    ],
)
def test_a_policy_pays_from_its_start_on_and_before_its_end(now: timedelta, code: str | None) -> None:
    version = policy(starts_at=NOW, ends_at=NOW + timedelta(hours=1))
    call = facts(now=NOW + now)

    assert (_refused(version, call) if code else _decided(version, call).paid_by) == (code or version)


@pytest.mark.parametrize(("beyond", "pays"), [(-1, True), (0, True), (1, False)])
def test_a_policy_pays_up_to_its_gas_price(beyond: int, pays: bool) -> None:
    version, call = policy(gas_price_ceiling_wei=_CEILING), facts(gas_price_wei=_CEILING + beyond)

    if pays:
        assert _decided(version, call).paid_by == version
    else:
        assert _refused(version, call) == "sponsor-gas-price"
        assert _decided(version, call).error().members["limit"] == str(_CEILING)


@pytest.mark.parametrize(("since", "pays"), [(-_MOMENT, False), (timedelta(0), True), (_MOMENT, True)])
def test_a_policy_for_new_profiles_pays_for_those_since_its_time(since: timedelta, pays: bool) -> None:
    version = policy(profiles=Profiles.NEW, new_since=NOW - timedelta(days=3))
    call = facts(profile_since=NOW - timedelta(days=3) + since)

    assert (_decided(version, call).paid_by or _refused(version, call)) == (
        version if pays else "sponsor-profile"
    )


def test_a_policy_for_listed_profiles_pays_for_those_that_this_version_lists() -> None:
    version, other = policy(profiles=Profiles.LISTED), policy(profiles=Profiles.LISTED)

    assert _decided(version, facts(listed=frozenset({version.version_id}))).paid_by == version
    assert _refused(version, facts(listed=frozenset({other.version_id}))) == "sponsor-profile"


def test_a_policy_for_vouched_profiles_requires_a_voucher_of_its_own() -> None:
    version = policy(profiles=Profiles.VOUCHED)
    own, other = (voucher(policy=name, maximum_credits=10**6) for name in (version.policy, "another"))

    assert _decided(version, facts(voucher=own)).paid_by == version
    assert _refused(version, facts(voucher=other)) == "sponsor-voucher-missing"
    assert _refused(version, facts()) == "sponsor-voucher-missing"


def test_a_voucher_for_another_policy_takes_nothing_from_one_that_needs_none() -> None:
    version = policy()

    assert _decided(version, facts(voucher=voucher(maximum_credits=0))).paid_by == version


def test_every_action_must_be_listed() -> None:
    contract, function, other = random_address(), random_function(), random_function()
    version = policy(targets=(Target(random_address()), Target(contract, frozenset({function, NO_FUNCTION}))))
    listed, plain = Action(contract, function), Action(contract, NO_FUNCTION)

    assert _decided(version, facts(actions=(listed, plain))).paid_by == version
    for foreign in (Action(contract, other), Action(random_address(), function), Action(PROFILE, function)):
        for actions in ((foreign,), (listed, foreign), (foreign, listed)):
            assert _refused(version, facts(actions=actions)) == "sponsor-target"
    assert _decided(version, facts(actions=(Action(contract, other),))).error().members["fits"] == [
        {"contract": version.targets[0].contract, "functions": []},
        {"contract": contract, "functions": sorted(["0x", "0x" + function.hex()])},
    ]


def test_a_contract_without_functions_is_sponsored_whole_and_the_profile_only_if_listed() -> None:
    contract, function = random_address(), random_function()
    whole, own = (
        policy(targets=(Target(contract),)),
        policy(targets=(Target(PROFILE, frozenset({function})),)),
    )

    assert _decided(whole, facts(actions=(Action(contract, function),))).paid_by == whole
    assert _refused(whole, facts(actions=(Action(PROFILE, function),))) == "sponsor-target"
    assert _decided(own, facts(actions=(Action(PROFILE, function),))).paid_by == own
    assert _refused(own, facts(actions=(Action(contract, function),))) == "sponsor-target"


@pytest.mark.parametrize("contract", [DEPLOYMENT, DELEGATECALL])
def test_a_policy_with_targets_pays_for_no_deployments_and_delegate_calls(contract: str) -> None:
    version = policy(targets=(Target(random_address()), Target(PROFILE)))

    assert _refused(version, facts(actions=(Action(contract, NO_FUNCTION),))) == "sponsor-target"


def test_a_payload_that_does_not_decode_is_paid_for_only_without_targets() -> None:
    version, without = policy(targets=(Target(random_address()),)), policy()

    assert _refused(version, facts(actions=None)) == "sponsor-unreadable"
    assert _decided(without, facts(actions=None)).paid_by == without


def test_the_first_policy_that_fits_pays_and_those_before_it_name_their_rules() -> None:
    ended = policy(ends_at=NOW)
    used_up = policy(limits=Limits(user_calls=3))
    pays, never_asked = policy(share_percent=50), policy()

    decision = decide(
        [ended, used_up, pays, never_asked], facts(credits=7), {used_up.version_id: Usage(user_calls=3)}
    )

    assert decision.paid_by == pays
    assert (decision.sponsor_credits, decision.user_credits) == (4, 3)
    assert [(each.version, each.refusal.code) for each in decision.refusals] == [
        (ended, "sponsor-ended"),
        (used_up, "sponsor-limit-user-calls"),
    ]


def test_without_a_matching_policy_the_error_is_that_of_the_closest_policy() -> None:
    versions = [policy(ends_at=NOW), policy(limits=Limits(call=1)), policy(starts_at=NOW + _MOMENT)]

    error = decide(versions, facts(credits=2), {}).error()

    assert (error.code, error.members["policy"]) == ("sponsor-limit-call", versions[1].policy)
    assert [(each["policy"], each["code"]) for each in error.members["policies"]] == [
        (versions[0].policy, "sponsor-ended"),
        (versions[1].policy, "sponsor-limit-call"),
        (versions[2].policy, "sponsor-not-started"),
    ]


def test_without_any_policy_nothing_is_paid() -> None:
    decision = decide([], facts(credits=5), {})

    assert (decision.paid_by, decision.user_credits) == (None, 5)
    assert (decision.error().code, decision.error().status) == ("sponsor-no-policy", 403)


def test_every_rule_has_a_code_of_its_own() -> None:
    codes = [error.code for error in PolicyRefused.__subclasses__()]
    assert len(set(codes)) == len(codes) == 26
    assert all(code.startswith("sponsor-") for code in codes)


def test_a_policy_pays_on_its_chain_alone() -> None:
    here, elsewhere = policy(), policy(chain_id=CHAIN + 1)
    decision = decide([elsewhere, here], facts(), {})
    assert decision.paid_by == here
    error = decide([elsewhere], facts(), {}).error()
    assert (error.code, error.status, error.members["fits"]) == ("sponsor-chain", 403, CHAIN + 1)
