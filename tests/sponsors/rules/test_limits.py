"""Each limit pays up to its bound, to the credit and to the call, and names itself, what is used and what is left."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sponsors.rules.choosing import decide
from sponsors.rules.policies import (
    Limits,
    PolicyVersion,
    Profiles,
    Usage,
    period_of,
    sponsor_part,
)
from tests.sponsors.rules.rows import NOW, facts, policy, voucher

_LIMIT = 1000 + secrets.randbelow(10**6)
_USED = secrets.randbelow(_LIMIT - 500)
_SECONDS = 60 + secrets.randbelow(10**5)
# Hypothesis wants bounds without a zone.
_FIRST, _LAST = (datetime(year, 1, 1, tzinfo=UTC).replace(tzinfo=None) for year in (1971, 2200))
_MIDNIGHT = datetime(NOW.year, NOW.month, NOW.day, tzinfo=UTC) + timedelta(days=1)


class _Bound(NamedTuple):
    code: str
    limits: Limits
    usage: Usage
    resets: datetime | None

    @property
    def used(self) -> int:
        return max(self.usage.user_day, self.usage.user_total, self.usage.window, self.usage.campaign)


_BOUNDS = [
    _Bound("sponsor-limit-call", Limits(call=_LIMIT), Usage(), None),
    _Bound("sponsor-limit-user-total", Limits(user_total=_LIMIT), Usage(user_total=_USED), None),
    _Bound("sponsor-limit-user-day", Limits(user_day=_LIMIT), Usage(user_day=_USED), _MIDNIGHT),
    _Bound(
        "sponsor-limit-window",
        Limits(window=_LIMIT, window_seconds=_SECONDS),
        Usage(window=_USED),
        period_of(NOW, seconds=_SECONDS).end,
    ),
    _Bound("sponsor-limit-campaign", Limits(campaign=_LIMIT), Usage(campaign=_USED), None),
]


@pytest.mark.parametrize("bound", _BOUNDS, ids=lambda bound: bound.code)
@pytest.mark.parametrize(("beyond", "pays"), [(-1, True), (0, True), (1, False)])
def test_a_limit_in_credits_pays_below_and_at_its_bound_and_not_above(
    bound: _Bound, beyond: int, pays: bool
) -> None:
    wanted = _LIMIT - bound.used + beyond
    version = policy(limits=bound.limits)

    decision = decide([version], facts(credits=wanted), {version.version_id: bound.usage})

    assert decision.paid_by == (version if pays else None)
    assert decision.sponsor_credits == (wanted if pays else 0)
    assert decision.user_credits == (0 if pays else wanted)
    if not pays:
        error = decision.error()
        resets = {"resets": bound.resets.isoformat()} if bound.resets else {}
        known = {"limit": _LIMIT, "used": bound.used, "fits": _LIMIT - bound.used, **resets}
        assert (error.code, error.status) == (bound.code, 402)
        assert error.members == {
            "policy": version.policy,
            **known,
            "policies": [{"policy": version.policy, "code": bound.code, "detail": error.detail, **known}],
        }


_NUMBERS: dict[str, tuple[Limits, Callable[[int], Usage]]] = {
    "sponsor-limit-user-calls": (Limits(user_calls=_LIMIT), lambda used: Usage(user_calls=used)),
    "sponsor-limit-window-calls": (
        Limits(window_calls=_LIMIT, window_seconds=_SECONDS),
        lambda used: Usage(window_calls=used),
    ),
    "sponsor-limit-campaign-calls": (
        Limits(campaign_calls=_LIMIT),
        lambda used: Usage(campaign_calls=used),
    ),
}


@pytest.mark.parametrize("rule", _NUMBERS)
@pytest.mark.parametrize(("used", "pays"), [(-2, True), (-1, True), (0, False), (1, False)])
def test_a_number_of_calls_is_paid_and_not_one_more(rule: str, used: int, pays: bool) -> None:
    limits, usage = _NUMBERS[rule]
    version = policy(limits=limits)

    decision = decide([version], facts(), {version.version_id: usage(_LIMIT + used)})

    assert decision.paid_by == (version if pays else None)
    if not pays:
        error = decision.error()
        assert (error.code, error.status) == (rule, 402)
        assert ("resets" in error.members) == (rule == "sponsor-limit-window-calls")
        assert (error.members["limit"], error.members["used"], error.members["fits"]) == (
            _LIMIT,
            _LIMIT + used,
            0,
        )


@pytest.mark.parametrize(("beyond", "pays"), [(-1, True), (0, True), (1, False)])
def test_a_voucher_pays_up_to_its_maximum(beyond: int, pays: bool) -> None:
    version = policy(profiles=Profiles.VOUCHED)
    brought = voucher(policy=version.policy, maximum_credits=_LIMIT)

    decision = decide([version], facts(credits=_LIMIT + beyond, voucher=brought), {})

    assert decision.paid_by == (version if pays else None)
    if not pays:
        assert (decision.error().code, decision.error().members["fits"]) == ("sponsor-limit-voucher", _LIMIT)


@pytest.mark.parametrize(
    "limits", [Limits(call=0), Limits(user_day=0), Limits(user_calls=0), Limits(campaign=0)]
)
def test_a_limit_of_zero_pays_nothing(limits: Limits) -> None:
    assert decide([policy(limits=limits)], facts(credits=1), {}).paid_by is None


def test_a_limit_that_is_already_exceeded_leaves_nothing() -> None:
    version = policy(limits=Limits(campaign=_LIMIT))

    decision = decide([version], facts(), {version.version_id: Usage(campaign=_LIMIT + 7)})

    assert decision.error().members["fits"] == 0


@pytest.mark.parametrize(("beyond", "pays"), [(-1, True), (0, True), (1, False)])
def test_limits_bound_the_sponsors_part_and_the_user_pays_the_rest(beyond: int, pays: bool) -> None:
    share = 1 + secrets.randbelow(99)
    wanted = 1 + secrets.randbelow(10**6)
    part = sponsor_part(wanted, share_percent=share)
    version = policy(limits=Limits(call=part - beyond), share_percent=share)

    decision = decide([version], facts(credits=wanted), {})

    assert decision.paid_by == (version if pays else None)
    assert (decision.sponsor_credits, decision.user_credits) == (
        (part, wanted - part) if pays else (0, wanted)
    )


@given(credits=st.integers(0, 10**12), share=st.integers(1, 100), less=st.integers(0, 10**12))
def test_the_sponsors_part_rounds_up_once_and_never_grows_as_the_cost_falls(
    credits: int, share: int, less: int
) -> None:
    part = sponsor_part(credits, share_percent=share)

    assert 0 <= part * 100 - credits * share < 100
    assert sponsor_part(max(0, credits - less), share_percent=share) <= part <= credits


@given(
    now=st.datetimes(timezones=st.just(UTC), min_value=_FIRST, max_value=_LAST),
    seconds=st.integers(1, 10**8),
)
def test_windows_are_consecutive_from_the_epoch(now: datetime, seconds: int) -> None:
    start, end = period_of(now, seconds=seconds)

    assert start <= now < end
    assert end - start == timedelta(seconds=seconds)
    assert int(start.timestamp()) % seconds == 0
    assert period_of(end, seconds=seconds).start == end
    assert period_of(end - timedelta(microseconds=1), seconds=seconds).start == start


@pytest.mark.parametrize(
    "values",
    [
        {"share_percent": 0},
        {"share_percent": 101},
        {"profiles": Profiles.NEW},
        {"new_since": NOW},
        {"limits": Limits(window=1)},
        {"limits": Limits(window_seconds=1)},
    ],
)
def test_a_version_that_contradicts_itself_cannot_be_made(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="contradicts itself"):
        PolicyVersion(version_id=1, policy="p", chain_id=1, **values)  # type: ignore[arg-type]
