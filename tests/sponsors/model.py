"""
A sponsor's books in plain Python, against which random histories compare the product's. Nothing of the product is used.

The model keeps every sponsored call and adds up afresh what a policy has used: no counter can be wrong.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """One version of a policy. Limits are credits, or calls; None does not limit, and so does an empty set."""

    number: int
    share: int = 100
    call: int = 10**9
    user_day: int | None = None
    user: int | None = None
    user_calls: int | None = None
    window: int | None = None
    window_seconds: int | None = None
    campaign: int | None = None
    targets: frozenset[str] = frozenset()
    # Whose calls it pays for: "all", "listed" profiles, or the name of another rule.
    rule: str = "all"
    profiles: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Brought:
    """
    What a call brings, and what others tell of it.

    `voucher_id` is of a voucher for one call by a policy, and `voucher_fault` the rule that refuses the voucher.
    `relations` are the rules about tokens and follows that hold on the chain. The sponsor's server pays `verifier`
    credits at most, 0 is a no, and None no response.
    """

    voucher_id: bytes = b""
    voucher_of: str = ""
    voucher_credits: int = 0
    voucher_fault: str = ""
    relations: frozenset[str] = frozenset()
    verifier: int | None = 0


@dataclass
class Policy:
    """A policy by its name, with its versions; the newest counts."""

    name: str
    versions: list[Terms]
    is_enabled: bool = True


@dataclass
class Paid:
    """A call that the sponsor pays: the credits that are held for it, and its whole cost once it has ended."""

    policy: str
    terms: Terms
    user: int
    at: datetime
    held: int
    cost: int | None = None

    @property
    def credits(self) -> int:
        """What the sponsor pays for it now: what is held, or its share of the cost, rounded up."""
        if self.cost is None:
            return self.held
        return min(self.held, (self.cost * self.terms.share + 99) // 100)

    @property
    def counts(self) -> int:
        """Whether it counts as a call: one that is under way, or has cost something."""
        return int(self.cost is None or self.cost > 0)


class Part(NamedTuple):
    """What a count is of: policy, scope, user (0 for all) and when it begins."""

    policy: str
    scope: str
    user: int
    begins: datetime


def parts_of(policy: str, terms: Terms, user: int, at: datetime) -> list[tuple[Part, int | None, str]]:
    """Return where a call counts, with the limit in credits and the rule that refuses more, in the order of asking."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    parts: list[tuple[Part, int | None, str]] = [
        (Part(policy, "user", user, _BEGINNING), terms.user, "sponsor-limit-user-total"),
        (Part(policy, "user-day", user, day), terms.user_day, "sponsor-limit-user-day"),
    ]
    if terms.window_seconds is not None:
        begins = datetime.fromtimestamp(at.timestamp() // terms.window_seconds * terms.window_seconds, UTC)
        parts.append((Part(policy, "window", 0, begins), terms.window, "sponsor-limit-window"))
    return [*parts, (Part(policy, "campaign", 0, _BEGINNING), terms.campaign, "sponsor-limit-campaign")]


@dataclass
class Sponsor:
    """A sponsor's funds, policies in order, and calls by the keys of the history."""

    funds: int
    policies: list[Policy]
    is_frozen: bool = False
    calls: dict[int, Paid] = field(default_factory=dict)
    used_vouchers: set[bytes] = field(default_factory=set)

    @property
    def balance(self) -> int:
        """The funds without what ended calls cost."""
        return self.funds - sum(call.credits for call in self.calls.values() if call.cost is not None)

    @property
    def held(self) -> int:
        """What calls under way hold."""
        return sum(call.credits for call in self.calls.values() if call.cost is None)

    def counts(self) -> tuple[Counter[Part], Counter[Part]]:
        """Return the credits and the calls of every part."""
        amounts: Counter[Part] = Counter()
        calls: Counter[Part] = Counter()
        for call in self.calls.values():
            for part, _, _ in parts_of(call.policy, call.terms, call.user, call.at):
                amounts[part] += call.credits
                calls[part] += call.counts
        return amounts, calls

    def refusal(
        self,
        policy: Policy,
        terms: Terms,
        *,
        user: int,
        target: str,
        part: int,
        at: datetime,
        brought: Brought,
    ) -> str | None:
        """Return the rule with which this version refuses to pay `part` credits, None if it pays."""
        if terms.targets and target not in terms.targets:
            return "sponsor-target"
        if terms.rule == "listed" and user not in terms.profiles:
            return "sponsor-profile"
        if terms.rule == "vouched" and brought.voucher_fault:
            return brought.voucher_fault
        if terms.rule == "vouched" and brought.voucher_of != policy.name:
            return "sponsor-voucher-missing"
        if part > terms.call:
            return "sponsor-limit-call"
        if terms.rule == "vouched" and part > brought.voucher_credits:
            return "sponsor-limit-voucher"
        return self._limit(policy, terms, user=user, part=part, at=at) or _outside(terms, brought, part)

    def _limit(self, policy: Policy, terms: Terms, *, user: int, part: int, at: datetime) -> str | None:
        amounts, calls = self.counts()
        for place, limit, rule in parts_of(policy.name, terms, user, at):
            if place.scope == "user" and terms.user_calls is not None and calls[place] >= terms.user_calls:
                return "sponsor-limit-user-calls"
            if limit is not None and amounts[place] + part > limit:
                return rule
        return None


def _outside(terms: Terms, brought: Brought, part: int) -> str | None:
    if terms.rule == "verified":
        if brought.verifier is None:
            return "sponsor-verifier-unknown"
        if brought.verifier == 0:
            return "sponsor-verifier"
        return None if part <= brought.verifier else "sponsor-limit-verifier"
    needs_relation = terms.rule in {"holding", "followed", "follower"}
    return "sponsor-holding" if needs_relation and terms.rule not in brought.relations else None
