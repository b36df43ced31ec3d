"""A subscription that begins today: paid out, spent from, to be ended, changed, ended at once."""

from collections.abc import Callable

from devstack.console import say
from devstack.journey.checks import until
from devstack.journey.figures import some_amount
from devstack.journey.subscriber import Subscriber
from devstack.wallet import Wallet


def live_today(subscriber: Subscriber, spend: Callable[[Wallet], int]) -> None:
    """Subscribe, be paid out for the running month, spend, cancel, think better of it, end it at once."""
    amount = some_amount()
    subscriber.introduce()
    subscriber.subscribe(amount)
    worth, end = subscriber.be_paid_out(1, amount, counts=True), subscriber.period.end
    subscriber.spend(spend)
    subscriber.cancel(immediately=False)
    subscriber.find_quota(total=worth, reset=end)
    subscriber.change(some_amount(other_than=amount))
    subscriber.find_quota(total=worth, reset=end)
    subscriber.cancel(immediately=True)
    subscriber.find_quota(total=0, reset=-1)
    until(
        "what the service has not taken",
        subscriber.provider.undelivered_events,
        [],
        patience=subscriber.patience,
    )
    say("  ✓ every event of the provider has been delivered")
