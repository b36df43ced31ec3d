"""A policy asks beyond the rows only where everything else fits, and decides by the answer."""

import secrets
from typing import Any

import pytest

from sponsors.rules.choosing import decide
from sponsors.rules.policies import Holding, Limits, PolicyVersion, Profiles
from tests.factories import random_address
from tests.sponsors.rules.rows import facts, policy

_RULES = (Profiles.HOLDING, Profiles.FOLLOWED, Profiles.FOLLOWER)


def _version(rule: Profiles = Profiles.HOLDING, **values: Any) -> PolicyVersion:
    holding = Holding(rule, random_address(), 1 + secrets.randbelow(10**20))
    return policy(profiles=rule, holding=holding, **values)


def _holding(version: PolicyVersion) -> Holding:
    assert version.holding is not None
    return version.holding


@pytest.mark.parametrize("rule", _RULES)
def test_without_an_answer_nothing_is_decided_and_the_question_is_returned(rule: Profiles) -> None:
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
    [(True, None, None), (False, "sponsor-holding", 403), (None, "sponsor-holding-unknown", 503)],
)
def test_the_answer_decides(
    rule: Profiles, answer: bool | None, code: str | None, status: int | None
) -> None:
    version = _version(rule)

    decision = decide([version], facts(holdings={_holding(version): answer}), {})

    assert decision.question is None
    assert (decision.paid_by == version) is (answer is True)
    if code:
        error = decision.error()
        assert (error.code, error.status, error.members["fits"] if answer is False else None) == (
            code,
            status,
            _holding(version).counterpart if answer is False else None,
        )


def test_a_policy_that_refuses_by_another_rule_asks_nothing() -> None:
    call = facts()
    version = _version(limits=Limits(call=call.credits - 1))

    assert decide([version], call, {}).question is None


def test_a_policy_asks_only_for_itself() -> None:
    first, second = _version(), _version()

    decision = decide([first, second], facts(holdings={_holding(first): False}), {})

    assert decision.question == _holding(second)


@pytest.mark.parametrize("values", [{"profiles": Profiles.FOLLOWED}, {"profiles": Profiles.ALL}])
def test_a_version_has_a_holding_for_these_rules_alone(values: dict[str, Any]) -> None:
    holding = Holding(Profiles.FOLLOWED, random_address()) if values["profiles"] is Profiles.ALL else None
    with pytest.raises(ValueError, match="contradicts itself"):
        policy(**values, holding=holding)
