"""The allowance of a payout: its period, shortened by a cancellation, and none once the money is returned."""

from datetime import UTC, datetime, timedelta

import pytest

from payments.models import Payout, Subscription
from payments.services.payouts import paid_period_of

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
END = START + timedelta(days=28)
MOMENT = timedelta(seconds=1)


def _payout(*, status: str = "active", ended_at: datetime | None = None, cancels: bool = False) -> Payout:
    """Return a payout that is not stored, of a subscription in this state."""
    subscription = Subscription(
        status=status,
        ended_at=ended_at,
        current_period_start=START,
        current_period_end=END,
        cancels_at_period_end=cancels,
    )
    return Payout(credits=777, period_start=START, period_end=END, subscription=subscription)


def _times(payout: Payout, *, is_taken_back: bool = False) -> tuple[datetime, datetime, bool, datetime]:
    period = paid_period_of(payout=payout, credits=0 if is_taken_back else 777)
    assert period is not None
    assert period.credits == (0 if is_taken_back else 777)
    return period.starts_at, period.ends_at, period.renews, period.resets_at


def test_the_allowance_lasts_as_long_as_its_period() -> None:
    assert _times(_payout()) == (START, END, True, END)


@pytest.mark.parametrize(
    ("status", "cancels"), [("active", True), ("past_due", True), ("unpaid", False), ("paused", False)]
)
def test_the_allowance_of_a_subscription_that_is_not_collected_again_does_not_renew(
    status: str, cancels: bool
) -> None:
    assert _times(_payout(status=status, cancels=cancels)) == (START, END, False, END)


def test_the_allowance_of_a_past_due_subscription_renews() -> None:
    assert _times(_payout(status="past_due")) == (START, END, True, END)


@pytest.mark.parametrize("wait", [MOMENT, timedelta(days=9), END - START - MOMENT])
def test_an_immediate_cancellation_ends_the_allowance(wait: timedelta) -> None:
    ended_at = START + wait
    assert _times(_payout(status="canceled", ended_at=ended_at)) == (START, ended_at, False, ended_at)


@pytest.mark.parametrize("late", [timedelta(0), MOMENT, timedelta(days=40)])
def test_a_cancellation_with_the_period_does_not_shorten_the_allowance(late: timedelta) -> None:
    times = _times(_payout(status="canceled", ended_at=END + late))
    assert times == (START, END, False, END)


def test_the_allowance_of_a_period_paid_after_the_end_is_empty_and_in_order() -> None:
    times = _times(_payout(status="canceled", ended_at=START - MOMENT))
    assert times == (START, START, False, START)


@pytest.mark.parametrize("ended_at", [None, START + MOMENT, END])
def test_the_allowance_of_a_payout_taken_back_completely_is_empty(ended_at: datetime | None) -> None:
    status = "active" if ended_at is None else "canceled"
    times = _times(_payout(status=status, ended_at=ended_at), is_taken_back=True)
    assert times == (START, START, False, START)
