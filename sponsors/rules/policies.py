"""
The terms of policies, and the facts about a call by which the rules decide.

A version of a policy never changes, because every sponsored call names the version that paid. Limits bound the
sponsor's part of the calls, in credits; the user pays the rest. None means no limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from sponsors.errors import PolicyRefused
from sponsors.rules.calls import Action
from sponsors.rules.vouchers import Voucher


class Profiles(StrEnum):
    """The profiles that a policy pays for."""

    ALL = "all"
    LISTED = "listed"
    NEW = "new"
    """Profiles whose account with the service began at `new_since` or later."""
    VOUCHED = "vouched"
    """Profiles for which the call brings the sponsor's signed voucher."""
    HOLDING = "holding"
    """Profiles with a balance of a token."""
    FOLLOWED = "followed"
    """Profiles that a given profile follows (LSP-26)."""
    FOLLOWER = "follower"
    """Profiles that follow a given profile."""
    VERIFIED = "verified"
    """Profiles for whose call the sponsor's verifier answers yes."""


class Purpose(StrEnum):
    """What a policy pays for."""

    CALLS = "calls"
    PROFILES = "profiles"
    """New profiles that the sponsor's server requests. Each counts as a call of a user of its own."""
    WELCOME = "welcome"
    """New profiles that servers of any sponsors request, if these do not pay. Only the default sponsor's is asked."""


OF_PROFILES = frozenset({Purpose.PROFILES, Purpose.WELCOME})
ON_CHAIN = frozenset({Profiles.HOLDING, Profiles.FOLLOWED, Profiles.FOLLOWER})


@dataclass(frozen=True, slots=True)
class Holding:
    """
    A condition that a profile must fulfil at the newest block, for one of the rules ON_CHAIN.

    `counterpart` is a token of which the profile must have at least `minimum`, or the other profile of a follow.
    """

    rule: Profiles
    counterpart: str
    minimum: int = 1


@dataclass(frozen=True, slots=True)
class Verification:
    """A version's question to the sponsor's verifier: whether it pays these credits for the call."""

    version_id: int
    policy: str
    credits: int


Question = Holding | Verification


@dataclass(frozen=True, slots=True)
class OutsideResponse:
    """
    The response to a question. A verifier may add a maximum for the sponsor's part of the call, in credits.

    With a `fault`, a verifier gave no valid response; it says what came instead, such as "status 404".
    """

    is_yes: bool
    maximum_credits: int | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """
    A contract that a policy pays for, and its functions as 4-byte selectors.

    `contract` is an EIP-55 address, or `sponsors.rules.calls.PROFILE` for the profile's own functions. No functions
    means all functions; NO_FUNCTION is a transfer of LYX without data.
    """

    contract: str
    functions: frozenset[bytes] = frozenset()

    def allows(self, action: Action) -> bool:
        """Return whether the action is one of this contract and these functions."""
        return action.contract == self.contract and (not self.functions or action.function in self.functions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    The most that a policy pays, in credits: per call, per user and UTC day, per user, per window, and in total.

    Members that end in `calls` are numbers of calls. `window` holds for all users together in each `window_seconds`,
    counted from the unix epoch.
    """

    call: int | None = None
    user_day: int | None = None
    user_total: int | None = None
    user_calls: int | None = None
    window: int | None = None
    window_calls: int | None = None
    window_seconds: int | None = None
    campaign: int | None = None
    campaign_calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyVersion:
    """
    One version of a policy.

    Without targets it pays for every call. It pays from `starts_at` until before `ends_at`, at a gas price of at most
    `gas_price_ceiling_wei`, and `share_percent` (1 to 100) of each call. `new_since` is set only for Profiles.NEW, and
    `holding` only for the rules ON_CHAIN.

    Raises:
        ValueError: the share is out of range, or `new_since`, `holding` or the window's length does not fit the rule.
    """

    version_id: int
    policy: str
    # The id of the chain whose calls it pays for.
    chain_id: int
    purpose: Purpose = Purpose.CALLS
    targets: tuple[Target, ...] = ()
    profiles: Profiles = Profiles.ALL
    new_since: datetime | None = None
    holding: Holding | None = None
    limits: Limits = Limits()
    gas_price_ceiling_wei: int | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    share_percent: int = 100
    # What a new profile gets besides its deployment, in credits of the sponsor.
    first_credits: int = 0

    def __post_init__(self) -> None:
        is_whole = 1 <= self.share_percent <= 100
        has_since = (self.profiles is Profiles.NEW) == (self.new_since is not None)
        has_window = self.limits.window is not None or self.limits.window_calls is not None
        has_seconds = has_window == (self.limits.window_seconds is not None)
        has_holding = (self.profiles in ON_CHAIN) == (self.holding is not None)
        if not (is_whole and has_since and has_seconds and has_holding):
            raise ValueError("the version of the policy contradicts itself")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How much of a policy's limits is used, by holds and charges: by this user, and by all users."""

    user_day: int = 0
    user_total: int = 0
    user_calls: int = 0
    window: int = 0
    window_calls: int = 0
    campaign: int = 0
    campaign_calls: int = 0


NOTHING_USED = Usage()
UsageByVersion = Mapping[int, Usage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    The facts about one call by which policies decide.

    `actions` is None if the payload does not decode. `profile_since` is the time when the profile's account here was
    created, `listed` the versions that list the profile, `credits` the most that the call may cost, and `gas_price_wei`
    the gas price of this cost. `voucher` was verified by `vouchers.verify`; `voucher_fault` is why a voucher was
    refused. `responses` has None for a question without a valid response, and no item for one that was not asked yet.
    """

    actions: tuple[Action, ...] | None
    profile_since: datetime
    credits: int
    gas_price_wei: int
    now: datetime
    chain_id: int
    purpose: Purpose = Purpose.CALLS
    listed: frozenset[int] = frozenset()
    voucher: Voucher | None = None
    voucher_fault: PolicyRefused | None = None
    responses: Mapping[Question, OutsideResponse | None] = field(default_factory=dict)


class Budget(NamedTuple):
    """The most that all policies of a sponsor pay in its UTC day or month, and how much of it is used, in credits."""

    period: str
    resets: datetime
    limit: int
    used: int

    def refusal(self, credits: int) -> str:
        """Return why the budget does not have these credits, as a sentence."""
        left = max(0, self.limit - self.used)
        return f"The sponsor pays {self.limit} credits a {self.period}; {left} are left, and {credits} are needed."

    def members(self) -> dict[str, Any]:
        """Return the budget as members of the problem document."""
        left = max(0, self.limit - self.used)
        resets = self.resets.isoformat()
        return {"period": self.period, "limit": self.limit, "used": self.used, "resets": resets, "fits": left}


class Period(NamedTuple):
    """A period of time that excludes its end."""

    start: datetime
    end: datetime


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_SECONDS = 86_400


def period_of(now: datetime, *, seconds: int) -> Period:
    """Return the window of this length that contains `now`; consecutive windows start at the unix epoch."""
    length = timedelta(seconds=seconds)
    start = _EPOCH + (now - _EPOCH) // length * length
    return Period(start, start + length)


def sponsor_part(credits: int, *, share_percent: int) -> int:
    """Return the sponsor's part of a cost. It is rounded up, so that rounding never costs the user a credit."""
    return -(-credits * share_percent // 100)
