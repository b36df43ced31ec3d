"""
Chooses the first policy that pays for a call; each policy before it names the rule that refused.

The usage that the rules read may be outdated when the call is accepted, so the statement that holds its credits checks
the counters again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sponsors import errors
from sponsors.rules.bounds import BOUNDS
from sponsors.rules.conditions import CONDITIONS
from sponsors.rules.outside import OUTSIDE
from sponsors.rules.policies import (
    NOTHING_USED,
    Facts,
    PolicyVersion,
    Question,
    UsageByVersion,
    sponsor_part,
)
from sponsors.rules.refusals import Case, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRefusal:
    """A policy's version, the rule that refused the call, and the number of rules that the call passed before."""

    version: PolicyVersion
    refusal: Refusal
    rules_passed: int

    def members(self) -> dict[str, Any]:
        """Return the policy and the rule as a member of the problem document."""
        rule = {"code": self.refusal.code, "detail": self.refusal.detail, **self.refusal.members()}
        return {"policy": self.version.policy, **rule}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """
    Which version pays, and how much each side pays at most, in credits. The sponsor's include first credits.

    `refusals` are those of the policies before the one that pays, or of all policies if none pays. With a `question`,
    nothing is decided until the facts contain its response.
    """

    paid_by: PolicyVersion | None
    sponsor_credits: int
    user_credits: int
    refusals: tuple[PolicyRefusal, ...]
    question: Question | None = None

    def error(self) -> errors.PolicyRefused:
        """Return the error of the policy of which the call passed the most rules; of several, the first."""
        if not self.refusals:
            return errors.NoPolicy("The sponsor has no policy in force.", policies=[])
        nearest = max(self.refusals, key=lambda each: each.rules_passed)
        refusal = nearest.refusal
        return refusal.error(
            refusal.detail,
            retry_after=refusal.error.retry_seconds,
            policy=nearest.version.policy,
            **refusal.members(),
            policies=[each.members() for each in self.refusals],
        )


def decide(versions: Sequence[PolicyVersion], facts: Facts, usage: UsageByVersion) -> Decision:
    """Return which of the versions, in order, pays for the call; a version that `usage` lacks counts as unused."""
    refusals: list[PolicyRefusal] = []
    for version in versions:
        part = sponsor_part(facts.credits, share_percent=version.share_percent)
        whole = part + version.first_credits
        used = usage.get(version.version_id, NOTHING_USED)
        outcome = check(Case(version, facts, used, whole))
        if isinstance(outcome, PolicyRefusal):
            refusals.append(outcome)
            continue
        pays = outcome is None
        return Decision(
            paid_by=version if pays else None,
            sponsor_credits=whole if pays else 0,
            user_credits=facts.credits - (part if pays else 0),
            refusals=tuple(refusals),
            question=outcome,
        )
    return Decision(paid_by=None, sponsor_credits=0, user_credits=facts.credits, refusals=tuple(refusals))


def check(case: Case) -> PolicyRefusal | Question | None:
    """Return the first rule of the version that refuses the call, or its question; None if the version pays."""
    for place, rule in enumerate((*CONDITIONS, *BOUNDS, *OUTSIDE)):
        outcome = rule(case)
        if isinstance(outcome, Refusal):
            return PolicyRefusal(version=case.version, refusal=outcome, rules_passed=place)
        if outcome is not None:
            return outcome
    return None
