"""A policy asks beyond the rows only where everything else fits, and decides by the response."""

import secrets
from typing import Any

import pytest

from sponsors.rules.choosing import decide
from sponsors.rules.policies import Holding, Limits, OutsideResponse, PolicyVersion, Profiles, Verification
from tests.factories import random_address
from tests.sponsors.rules.rows import facts, policy

_YES, _NO = OutsideResponse(is_yes=True), OutsideResponse(is_yes=False)
_RULES = (Profiles.HOLDING, Profiles.FOLLOWED, Profiles.FOLLOWER)


def _version(rule: Profiles = Profiles.HOLDING, **values: Any) -> PolicyVersion:
    holding = Holding(rule, random_address(), 1 + secrets.randbelow(10**20))
    return policy(profiles=rule, holding=holding, **values)


def _holding(version: PolicyVersion) -> Holding:
    assert version.holding is not None
    return version.holding


@pytest.mark.parametrize("rule", _RULES)
def test_without_a_verifier_response_nothing_is_decided_and_its_request_is_returned(rule: Profiles) -> None:
    version, call = _version(rule), facts()

    decision = decide([version, policy()], call, {})

    assert (decision.question, decision.paid_by, decision.user_credits) == (
        _holding(version),
        None,
        call.credits,
    )


@pytest.mark.parametrize("rule", _RULES)
@pytest.mark.parametrize(
    ("answer", "code", "status"),
    [(_YES, None, None), (_NO, "sponsor-holding", 403), (None, "sponsor-holding-unknown", 503)],
)
def test_the_result_from_the_chain_decides(
    rule: Profiles, answer: OutsideResponse | None, code: str | None, status: int | None
) -> None:
    version = _version(rule)

    decision = decide([version], facts(responses={_holding(version): answer}), {})

    assert decision.question is None
    assert (decision.paid_by == version) is (answer is _YES)
    if code:
        error = decision.error()
        assert (error.code, error.status) == (code, status)
        assert error.members.get("fits") == (_holding(version).counterpart if answer else None)


@pytest.mark.parametrize("share", [1, 50, 100])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_a_verifier_request_has_the_sponsors_share_and_the_response_may_cap_it(
    share: int, beyond: int
) -> None:
    version, call = policy(profiles=Profiles.VERIFIED, share_percent=share), facts(credits=1000)
    part = 10 * share
    question = decide([version], call, {}).question
    assert question == Verification(version.version_id, version.policy, part)

    result = OutsideResponse(is_yes=True, maximum_credits=part + beyond)
    decision = decide([version], facts(credits=1000, responses={question: result}), {})

    assert (decision.paid_by, decision.sponsor_credits) == ((None, 0) if beyond < 0 else (version, part))
    if beyond < 0:
        assert decision.error().code == "sponsor-limit-verifier"
        assert decision.error().members["limit"] == part - 1


@pytest.mark.parametrize(
    ("answer", "code"),
    [(_YES, None), (_NO, "sponsor-verifier"), (None, "sponsor-verifier-unknown")],
)
def test_the_verifiers_response_decides(answer: OutsideResponse | None, code: str | None) -> None:
    version, call = policy(profiles=Profiles.VERIFIED), facts()
    question = Verification(version.version_id, version.policy, call.credits)

    decision = decide([version], facts(credits=call.credits, responses={question: answer}), {})

    assert (decision.paid_by or decision.error().code) == (code or version)


def test_a_policy_that_refuses_by_another_rule_sends_no_verifier_request() -> None:
    call = facts()
    version = _version(limits=Limits(call=call.credits - 1))

    assert decide([version], call, {}).question is None


def test_a_policys_verifier_request_concerns_only_that_policy() -> None:
    first, second = _version(), _version()

    decision = decide([first, second], facts(responses={_holding(first): _NO}), {})

    assert decision.question == _holding(second)


@pytest.mark.parametrize("values", [{"profiles": Profiles.FOLLOWED}, {"profiles": Profiles.ALL}])
def test_a_version_has_a_holding_for_these_rules_alone(values: dict[str, Any]) -> None:
    holding = Holding(Profiles.FOLLOWED, random_address()) if values["profiles"] is Profiles.ALL else None
    with pytest.raises(ValueError, match="contradicts itself"):
        policy(**values, holding=holding)
