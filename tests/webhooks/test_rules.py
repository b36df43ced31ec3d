"""When credits are low, when a change of that is news, and how many deliveries a receiver may have."""

import random
from datetime import timedelta

import pytest

from credits.rules import LOW_DAYS, daily_use
from webhooks.models import CreditState
from webhooks.rules import (
    DELIVERIES,
    RECOVERED_DAYS,
    Pace,
    Receiver,
    crossing,
    further_deliveries,
    next_state,
)

ENOUGH, LOW, DEPLETED = CreditState.ENOUGH, CreditState.LOW, CreditState.DEPLETED


@pytest.mark.parametrize(
    ("charged", "days", "use"),
    [(140, 14, 10), (140, 30, 10), (141, 14, 11), (140, 7, 20), (140, 0, 140), (0, 14, 0), (-20, 14, 0)],
)
def test_use_is_the_average_since_the_first_charge_of_two_weeks(charged: int, days: int, use: int) -> None:
    assert daily_use(charged=charged, since_first=timedelta(days=days)) == use


@pytest.mark.parametrize(
    ("state", "balance", "then", "after"),
    [
        (ENOUGH, 30, 0, ENOUGH),
        (ENOUGH, 29, 0, LOW),
        (ENOUGH, 0, 0, DEPLETED),
        (LOW, 49, 29, LOW),
        (LOW, 50, 29, ENOUGH),
        (LOW, 50, 50, LOW),
        (LOW, -1, 29, DEPLETED),
        (DEPLETED, 1, 0, LOW),
        (DEPLETED, 50, 0, ENOUGH),
    ],
)
def test_a_state_changes_below_three_days_and_above_five(
    state: CreditState, balance: int, then: int, after: CreditState
) -> None:
    assert next_state(state=state, balance=balance, balance_then=then, use=10) == after


@pytest.mark.parametrize("state", CreditState)
def test_without_use_nothing_runs_low_and_nothing_recovers_by_waiting(state: CreditState) -> None:
    for balance in (-5, 0, 7):
        assert next_state(state=state, balance=balance, balance_then=7, use=0) == state


def test_a_balance_that_swings_within_two_days_of_use_is_announced_once() -> None:
    use = random.randint(1, 10**6)
    state, then, told = ENOUGH, 10 * use, []
    for _ in range(200):
        balance = random.randint(1, RECOVERED_DAYS * use - 1)
        after = next_state(state=state, balance=balance, balance_then=then, use=use)
        if event := crossing(before=state, after=after):
            told.append(event)
        if after != state:
            state, then = after, balance
    assert len(told) <= 1
    assert LOW_DAYS < RECOVERED_DAYS


def test_whatever_hangs_a_prompt_receiver_of_another_owner_gets_threads() -> None:
    sending: list[Receiver] = []
    for _ in range(200):
        number, pace = random.randrange(40), random.choice([Pace.QUIET, Pace.UNKNOWN])
        one = Receiver(number, f"owner {number % 8}", pace)
        sending += [one] * further_deliveries(one, sending)
        others = [row for row in sending if row.owner == one.owner]
        assert (len(sending) <= 12, len(others) <= 4) == (True, True)
    assert further_deliveries(Receiver(99, "other", Pace.PROMPT), sending) == 4
    assert sum(row.pace is Pace.QUIET for row in sending) <= 4


def test_receivers_that_hang_fit_into_the_share_of_those_that_never_responded() -> None:
    unknown = [Receiver(number, str(number), Pace.UNKNOWN) for number in range(12)]
    assert further_deliveries(Receiver(99, "other", Pace.QUIET), unknown[:-1]) == 1
    assert further_deliveries(Receiver(99, "other", Pace.QUIET), unknown) == 0


def test_owners_with_many_prompt_receivers_share_the_threads() -> None:
    sending: list[Receiver] = []
    for number in range(10):
        one = Receiver(number, "owner", Pace.PROMPT)
        sending += [one] * further_deliveries(one, sending)
    assert len(sending) == 8
    other = Receiver(99, "other", Pace.PROMPT)
    assert further_deliveries(other, sending) == 4
    assert further_deliveries(other, [Receiver(n, str(n), Pace.PROMPT) for n in range(DELIVERIES)]) == 0
