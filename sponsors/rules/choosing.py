"""
The first policy that fits pays; every policy before it names the rule with which it refused.

What the rules read of usage may be old by the time the call is stored, so the counters decide once more in the
statement that stores it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sponsors import errors
from sponsors.rules.bounds import BOUNDS
from sponsors.rules.conditions import CONDITIONS
from sponsors.rules.policies import NOTHING_USED, Facts, PolicyVersion, UsageByVersion, sponsor_part
from sponsors.rules.refusals import Case, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRefusal:
    """A policy's version, the rule with which it refused, and the number of rules that it passed before."""

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
    Which version pays, and how much of the call each side pays at most, in credits.

    `refusals` are of the policies before the paying one in order; of all where none pays.
    """

    paid_by: PolicyVersion | None
    sponsor_credits: int
    user_credits: int
    refusals: tuple[PolicyRefusal, ...]

    def error(self) -> errors.PolicyRefused:
        """Return the error to answer with: of the policy that passed the most rules, the first of equals."""
        if not self.refusals:
            return errors.NoPolicy("The sponsor has no policy in force.", policies=[])
        nearest = max(self.refusals, key=lambda each: each.rules_passed)
        refusal = nearest.refusal
        return refusal.error(
            refusal.detail,
            policy=nearest.version.policy,
            **refusal.members(),
            policies=[each.members() for each in self.refusals],
        )


def decide(versions: Sequence[PolicyVersion], facts: Facts, usage: UsageByVersion) -> Decision:
    """Return which of the versions, in order, pays for the call; `usage` is by version, none where it is missing."""
    refusals: list[PolicyRefusal] = []
    for version in versions:
        part = sponsor_part(facts.credits, share_percent=version.share_percent)
        used = usage.get(version.version_id, NOTHING_USED)
        refused = check(Case(version, facts, used, part))
        if refused is None:
            return Decision(
                paid_by=version,
                sponsor_credits=part,
                user_credits=facts.credits - part,
                refusals=tuple(refusals),
            )
        refusals.append(refused)
    return Decision(paid_by=None, sponsor_credits=0, user_credits=facts.credits, refusals=tuple(refusals))


def check(case: Case) -> PolicyRefusal | None:
    """Return the first rule with which the version refuses the call, None if it pays."""
    for place, rule in enumerate((*CONDITIONS, *BOUNDS)):
        refusal = rule(case)
        if refusal is not None:
            return PolicyRefusal(version=case.version, refusal=refusal, rules_passed=place)
    return None
