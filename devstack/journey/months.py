"""
Two months of a subscription, from its first day to its end.

The service goes by the real clock and the provider by one that can be moved. So the
first journey of a stack moves the provider's clock two months back before anything
has happened there, subscribes, and lets the months pass until both clocks agree. A
provider whose months have been lived through is never moved back again.
"""

import time
from collections.abc import Callable

from devstack.console import say
from devstack.gateway_api import Refused
from devstack.journey.checks import Mismatch, expect, until
from devstack.journey.figures import months_before, some_amount, text_of
from devstack.journey.subscriber import Subscriber
from devstack.stripe.client import ControlError
from devstack.stripe_account import StripeAccount
from devstack.wallet import Wallet

_MONTHS = 2
# Stripe leaves a renewal's invoice open to changes for an hour before it collects it.
_UNTIL_COLLECTED = 3_600 + 60
_NEAR_MIDNIGHT = 120
_ALOUD_SECONDS = 2
_STEADY_READS = 10


def step_back(provider: StripeAccount, lead: int) -> bool:
    """
    Move an untouched provider's clock back so far that two months begun now end in `lead` seconds.

    Returns False where something has happened at the provider already. Where the month
    of the beginning is too short for the day, they end up to two days ago.
    """
    moment = months_before(int(time.time()) + lead, _MONTHS)
    # Begun on the next day, two months might end a day later than reckoned here.
    moment -= _NEAR_MIDNIGHT if moment % 86_400 > 86_400 - _NEAR_MIDNIGHT else 0
    try:
        provider.controls.set_clock(moment)
    except ControlError:
        return False
    say(f"  ✓ the provider's clock begins two months ago, at {text_of(provider.controls.now)}")
    return True


def live_two_months(subscriber: Subscriber, spend: Callable[[Wallet], int]) -> None:
    """Subscribe, be paid out, spend, change the amount, renew, cancel with the period, see it end."""
    provider, first_amount = subscriber.provider, some_amount()
    subscriber.introduce()
    subscriber.subscribe(first_amount)
    first = subscriber.period
    subscriber.be_paid_out(1, first_amount, counts=False)
    say("    a month that is long over by the service's clock counts no more; its credits stay")
    subscriber.spend(spend)
    second_amount = some_amount(other_than=first_amount)
    subscriber.change(second_amount)
    provider.controls.advance_to(first.end + _UNTIL_COLLECTED)
    say(f"  ✓ a month has passed at the provider: {text_of(provider.controls.now)}")
    expect("the start of the second period", subscriber.period.start, first.end)
    worth = subscriber.be_paid_out(2, second_amount, counts=True)
    subscriber.cancel(immediately=False)
    _see_it_end(subscriber, worth)


def _see_it_end(subscriber: Subscriber, worth: int) -> None:
    provider, end = subscriber.provider, subscriber.period.end
    if time.time() < end - _ALOUD_SECONDS:
        subscriber.find_quota(total=worth, reset=end)
        say(f"  … the paid period ends in {end - time.time():.0f} s")
    _follow_real_time(provider)
    patience = max(0, end - time.time()) + subscriber.patience

    def ending() -> tuple[str, int]:
        record = provider.subscription(subscriber.subscription)
        return record["status"], record["ended_at"]

    until("the subscription's (status, ended_at)", ending, ("canceled", end), patience=patience)
    say(f"  ✓ the period has ended: {subscriber.subscription} is canceled since {text_of(end)}")
    subscriber.find_quota(total=0, reset=-1)


def catch_up(subscriber: Subscriber) -> None:
    """Let the provider's clock follow the real one, and end what an earlier journey has left running."""
    lagged = _follow_real_time(subscriber.provider)
    try:
        subscriber.wallet.cancel_subscription(immediately=True)
    except Refused as refusal:
        expect("the refusal", (refusal.status, refusal.problem["code"]), (404, "no-subscription"))
        if not lagged:
            return
    say("  ✓ an earlier journey was cut short: what it left is caught up with and ended")
    subscriber.credits = _steady_credits(subscriber.wallet)


def _follow_real_time(provider: StripeAccount) -> bool:
    """Advance a clock that lags; return whether it did. One that is ahead cannot be helped."""
    lag = int(time.time()) - provider.controls.now
    if lag < -1:
        raise Mismatch(
            f"the provider's clock is {-lag} s ahead of the real one; begin anew with `make clean`"
        )
    if lag > 1:
        provider.controls.advance_to(int(time.time()))
    return lag > 1


def _steady_credits(wallet: Wallet) -> int:
    """Return the quota once payouts of what was caught up with have stopped changing it."""
    reads = [-1]
    while len(reads) < _STEADY_READS or len(set(reads[-_STEADY_READS:])) > 1:
        reads.append(int(wallet.quota()["quota"]))
        time.sleep(0.2)
    return reads[-1]
