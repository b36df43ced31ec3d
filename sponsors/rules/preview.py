"""
A preview of terms: which of some past calls they would have paid, and how much.

The terms are applied to the calls in order, as if they had begun with the first of them: with nothing used, for
profiles that are new since then, and regardless of their own beginning and end.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sponsors.rules.calls import Action
from sponsors.rules.choosing import PolicyRefusal, check
from sponsors.rules.policies import (
    ON_CHAIN,
    Facts,
    OutsideResponse,
    PolicyVersion,
    Profiles,
    Purpose,
    Question,
    Usage,
    period_of,
    sponsor_part,
)
from sponsors.rules.refusals import Case
from sponsors.rules.vouchers import ID_BYTES, UINT64_MAX, Voucher

# A past call does not show whether these would have been fulfilled, so the preview assumes it.
ASSUMED = frozenset({*ON_CHAIN, Profiles.VOUCHED, Profiles.VERIFIED})


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """
    A call of the past: its highest cost in credits when it was accepted, and what it cost in the end.

    `actions` is None if the payload does not decode, and `profile_since` is None if the sponsor must not learn when the
    profile's account here began.
    """

    at: datetime
    profile: str
    actions: tuple[Action, ...] | None
    credits: int
    cost: int
    gas_price_wei: int
    chain_id: int
    profile_since: datetime | None = None
    purpose: Purpose = Purpose.CALLS


@dataclass(slots=True)
class Preview:
    """
    How many calls the terms would have paid, with how many credits, and which rules would have refused how many.

    `undecided` calls depend on what the sponsor must not learn.
    """

    calls: int = 0
    paid: int = 0
    credits: int = 0
    undecided: int = 0
    refusals: Counter[str] = field(default_factory=Counter)


def preview(terms: PolicyVersion, calls: Iterable[PastCall], *, listed: frozenset[str]) -> Preview:
    """Return what the terms would have done with the calls; `listed` has the profiles that they list."""
    outcome, used = Preview(), _Used()
    ordered = sorted(calls, key=lambda call: call.at)
    version = _begun(terms, ordered[0].at) if ordered else terms
    for call in ordered:
        outcome.calls += 1
        refusal = _refusal(version, call, used.of(version, call), is_listed=call.profile in listed)
        if refusal is not None:
            outcome.refusals[refusal.refusal.code] += 1
        elif version.profiles is Profiles.NEW and call.profile_since is None:
            outcome.undecided += 1
        else:
            part = sponsor_part(call.cost, share_percent=version.share_percent)
            used.add(version, call, part)
            outcome.paid, outcome.credits = outcome.paid + 1, outcome.credits + part
    return outcome


def _begun(terms: PolicyVersion, first: datetime) -> PolicyVersion:
    since = min(terms.new_since, first) if terms.new_since else None
    return replace(terms, starts_at=None, ends_at=None, new_since=since)


def _refusal(
    version: PolicyVersion, call: PastCall, usage: Usage, *, is_listed: bool
) -> PolicyRefusal | None:
    responses: dict[Question, OutsideResponse | None] = {}
    facts = Facts(
        actions=call.actions,
        profile_since=call.profile_since or call.at,
        credits=call.credits,
        gas_price_wei=call.gas_price_wei,
        now=call.at,
        listed=frozenset({version.version_id} if is_listed else ()),
        voucher=_voucher(version, call),
        chain_id=call.chain_id,
        purpose=call.purpose,
        responses=responses,
    )
    part = sponsor_part(call.credits, share_percent=version.share_percent)
    while (found := check(Case(version, facts, usage, part))) is not None:
        if isinstance(found, PolicyRefusal):
            return found
        responses[found] = OutsideResponse(is_yes=True)
    return None


def _voucher(version: PolicyVersion, call: PastCall) -> Voucher | None:
    if version.profiles is not Profiles.VOUCHED:
        return None
    return Voucher(
        sponsor="",
        policy=version.policy,
        profile=call.profile,
        voucher_id=bytes(ID_BYTES),
        deadline=UINT64_MAX,
        maximum_credits=UINT64_MAX,
    )


class _Used:
    """What the calls before have used of the limits."""

    def __init__(self) -> None:
        self._credits: Counter[object] = Counter()
        self._calls: Counter[object] = Counter()

    def of(self, version: PolicyVersion, call: PastCall) -> Usage:
        day, window = self._periods(version, call)
        return Usage(
            user_day=self._credits[call.profile, day],
            user_total=self._credits[call.profile],
            user_calls=self._calls[call.profile],
            window=self._credits[window],
            window_calls=self._calls[window],
            campaign=self._credits[None],
            campaign_calls=self._calls[None],
        )

    def add(self, version: PolicyVersion, call: PastCall, part: int) -> None:
        day, window = self._periods(version, call)
        for key in ((call.profile, day), call.profile, window, None):
            self._credits[key] += part
            self._calls[key] += 1

    def _periods(self, version: PolicyVersion, call: PastCall) -> tuple[object, object]:
        seconds = version.limits.window_seconds
        window = period_of(call.at, seconds=seconds).start if seconds else "no window"
        return call.at.astimezone(UTC).date(), window
