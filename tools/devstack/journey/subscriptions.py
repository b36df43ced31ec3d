"""
The subscriptions of the journey: one that started two months ago, and one that starts today.

The service uses the real clock; the provider's can be moved. The first journey of a stack moves the provider's clock
two months back before it has any events, subscribes, and advances it until both clocks agree. After that the clock is
never moved back.
"""

import time
from collections.abc import Callable

from credit_relay_client import RelayProblem
from devstack.console import echo
from devstack.journey.checks import Mismatch, expect, months_before, some_amount, text_of, until
from devstack.journey.subscriber import Subscriber
from devstack.stripe_account import StripeAccount
from devstack.wallet import Wallet
from stripe_double.client import ControlError

_MONTHS = 2
# Stripe keeps a renewal's invoice as a draft for an hour.
_UNTIL_COLLECTED = 3_600 + 60
_NEAR_MIDNIGHT = 120
_WORTH_WAITING_SECONDS = 2
_STEADY_READS = 10


def set_clock_back(provider: StripeAccount, *, lead: int) -> bool:
    """
    Move the provider's clock back to a time from which two months end in `lead` seconds.

    Return False if the provider already has events. If the first month is too short for today's day of the month, the
    two months end up to two days ago.
    """
    moment = months_before(int(time.time()) + lead, _MONTHS)
    # Two months counted from the next day could end a day later.
    moment -= _NEAR_MIDNIGHT if moment % 86_400 > 86_400 - _NEAR_MIDNIGHT else 0
    try:
        provider.controls.set_clock(moment)
    except ControlError:
        return False
    echo(f"  ✓ the provider's clock begins two months ago, at {text_of(provider.controls.now)}")
    return True


def subscribe_two_months_ago(subscriber: Subscriber, spend: Callable[[Wallet], int]) -> None:
    """Subscribe, get the payout, spend, change the amount, renew, cancel at period end, and wait for it."""
    provider, first_amount = subscriber.provider, some_amount()
    subscriber.create_customer()
    subscriber.subscribe(first_amount)
    first = subscriber.period
    subscriber.check_payout(1, first_amount, counts=False)
    echo("    by the service's clock that month is over, so it does not count; its credits stay")
    subscriber.spend(spend)
    second_amount = some_amount(other_than=first_amount)
    subscriber.change(second_amount)
    provider.controls.advance_to(first.end + _UNTIL_COLLECTED)
    echo(f"  ✓ a month has passed at the provider: {text_of(provider.controls.now)}")
    expect("the start of the second period", subscriber.period.start, first.end)
    worth = subscriber.check_payout(2, second_amount, counts=True)
    subscriber.cancel(immediately=False)
    _check_end(subscriber, worth)


def _check_end(subscriber: Subscriber, worth: int) -> None:
    provider, end = subscriber.provider, subscriber.period.end
    if time.time() < end - _WORTH_WAITING_SECONDS:
        subscriber.check_quota(total=worth, reset=end)
        echo(f"  … the paid period ends in {end - time.time():.0f} s")
    _follow_real_time(provider)
    patience = max(0, end - time.time()) + subscriber.patience

    def ending() -> tuple[str, int]:
        record = provider.subscription(subscriber.subscription)
        return record["status"], record["ended_at"]

    until("the subscription's (status, ended_at)", ending, ("canceled", end), patience=patience)
    echo(f"  ✓ the period has ended: {subscriber.subscription} is canceled since {text_of(end)}")
    subscriber.check_quota(total=0, reset=-1)


def catch_up(subscriber: Subscriber) -> None:
    """Advance the provider's clock to the real time, and cancel the subscription of an interrupted journey."""
    lagged = _follow_real_time(subscriber.provider)
    try:
        subscriber.wallet.cancel_subscription(immediately=True)
    except RelayProblem as refusal:
        expect("the refusal", (refusal.status, refusal.code), (404, "no-subscription"))
        if not lagged:
            return
    echo("  ✓ an earlier journey was interrupted; its subscription is ended")
    subscriber.credits = _steady_credits(subscriber.wallet)


def _follow_real_time(provider: StripeAccount) -> bool:
    """Advance the provider's clock to the real time; return whether it lagged."""
    lag = int(time.time()) - provider.controls.now
    if lag < -1:
        raise Mismatch(
            f"the provider's clock is {-lag} s ahead of the real one; begin anew with `make clean`"
        )
    if lag > 1:
        provider.controls.advance_to(int(time.time()))
    return lag > 1


def _steady_credits(wallet: Wallet) -> int:
    """Return the quota once payouts have stopped changing it."""
    reads = [-1]
    while len(reads) < _STEADY_READS or len(set(reads[-_STEADY_READS:])) > 1:
        reads.append(int(wallet.quota()["quota"]))
        time.sleep(0.2)
    return reads[-1]


def subscribe_today(subscriber: Subscriber, spend: Callable[[Wallet], int]) -> None:
    """Subscribe, get the payout, spend, cancel at period end, undo that by a new amount, and cancel at once."""
    amount = some_amount()
    subscriber.create_customer()
    subscriber.subscribe(amount)
    worth, end = subscriber.check_payout(1, amount, counts=True), subscriber.period.end
    subscriber.spend(spend)
    subscriber.cancel(immediately=False)
    subscriber.check_quota(total=worth, reset=end)
    subscriber.change(some_amount(other_than=amount))
    subscriber.check_quota(total=worth, reset=end)
    subscriber.cancel(immediately=True)
    subscriber.check_quota(total=0, reset=-1)
    until(
        "the list of undelivered events",
        subscriber.provider.undelivered_events,
        [],
        patience=subscriber.patience,
    )
    echo("  ✓ every event of the provider has been delivered")
