"""The rule of when a paid period counts, without a database."""

from datetime import UTC, datetime, timedelta

import pytest

from credits.benefits import PaidPeriod

_END = datetime(2032, 3, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)


def _period(*, renews: bool) -> PaidPeriod:
    return PaidPeriod(
        credits=1,
        starts_at=_END - timedelta(days=29),
        ends_at=_END,
        resets_at=_END + timedelta(days=31),
        renews=renews,
    )


@pytest.mark.parametrize(
    ("since_end", "renews", "runs"),
    [
        (timedelta(days=-29, seconds=-1), True, False),
        (timedelta(days=-29), False, True),
        (timedelta(seconds=-1), False, True),
        (timedelta(0), False, False),
        (timedelta(0), True, True),
        (72 * _HOUR - timedelta(microseconds=1), True, True),
        (72 * _HOUR, True, False),
    ],
)
def test_a_period_runs_from_its_start_to_its_end_and_72_hours_on_where_it_renews(
    since_end: timedelta, renews: bool, runs: bool
) -> None:
    assert _period(renews=renews).runs_at(_END + since_end) is runs


def test_credits_are_counted_anew_at_the_end_of_the_period_the_provider_is_in() -> None:
    period = _period(renews=True)
    assert period.reset_after(_END - _HOUR) == _END
    assert period.reset_after(_END) == _END + timedelta(days=31)
