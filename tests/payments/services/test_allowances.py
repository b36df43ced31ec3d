"""The allowance of a payout: its period, cut short by an end at once, and none once the money is gone."""

from datetime import UTC, datetime, timedelta

import pytest

from payments.models import Payout, Subscription
from payments.services.payouts import paid_period_of

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
END = START + timedelta(days=28)
MOMENT = timedelta(seconds=1)


def _payout(*, status: str = "active", ended_at: datetime | None = None, cancels: bool = False) -> Payout:
    """Return a payout that is not stored, of a subscription that stands so."""
    subscription = Subscription(
        status=status,
        ended_at=ended_at,
        current_period_start=START,
        current_period_end=END,
        cancels_at_period_end=cancels,
    )
    return Payout(credits=777, period_start=START, period_end=END, subscription=subscription)


def _times(payout: Payout, *, is_taken_back: bool = False) -> tuple[datetime, datetime, bool, datetime]:
    told = paid_period_of(payout=payout, is_taken_back=is_taken_back)
    assert told.credits == 777
    return told.starts_at, told.ends_at, told.renews, told.resets_at


def test_it_lasts_as_long_as_its_period() -> None:
    assert _times(_payout()) == (START, END, True, END)


@pytest.mark.parametrize(
    ("status", "cancels"), [("active", True), ("past_due", True), ("unpaid", False), ("paused", False)]
)
def test_what_is_not_collected_again_does_not_renew(status: str, cancels: bool) -> None:
    assert _times(_payout(status=status, cancels=cancels)) == (START, END, False, END)


def test_past_due_renews_as_long_as_stripe_tries() -> None:
    assert _times(_payout(status="past_due")) == (START, END, True, END)


@pytest.mark.parametrize("wait", [MOMENT, timedelta(days=9), END - START - MOMENT])
def test_an_end_at_once_ends_it(wait: timedelta) -> None:
    ended_at = START + wait
    assert _times(_payout(status="canceled", ended_at=ended_at)) == (START, ended_at, False, ended_at)


@pytest.mark.parametrize("late", [timedelta(0), MOMENT, timedelta(days=40)])
def test_an_end_with_its_period_or_later_cuts_nothing(late: timedelta) -> None:
    told = _times(_payout(status="canceled", ended_at=END + late))
    assert told == (START, END, False, END)


def test_a_period_that_was_paid_after_the_end_never_begins_and_does_not_end_before_it_begins() -> None:
    told = _times(_payout(status="canceled", ended_at=START - MOMENT))
    assert told == (START, START, False, START)


@pytest.mark.parametrize("ended_at", [None, START + MOMENT, END])
def test_what_was_taken_back_whole_has_never_begun(ended_at: datetime | None) -> None:
    status = "active" if ended_at is None else "canceled"
    told = _times(_payout(status=status, ended_at=ended_at), is_taken_back=True)
    assert told == (START, START, False, START)
