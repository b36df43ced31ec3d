"""What the lower floors learn of a subscription: the allowance of its last paid period."""

from credits.services import allowance
from payments.models import Payout, Subscription


def follow_subscription(*, subscription: Subscription) -> None:
    """
    Bring the user's allowance in line with the subscription and its newest payout; in the caller's transaction.

    The allowance of a subscription that was ended at once ends at once, and so does that
    of a payout that was taken back whole. Another subscription's allowance, begun later, is left alone.
    """
    newest = newest_payout(subscription=subscription)
    if newest is None:
        return
    if subscription.ended_at is not None and subscription.ended_at < newest.period_end:
        allowance.end_allowance(user=subscription.user, now=max(subscription.ended_at, newest.period_start))
        return
    if newest.is_taken_back():
        allowance.end_allowance(user=subscription.user, now=newest.period_start)
        return
    allowance.set_allowance(
        user=subscription.user,
        credits=newest.credits,
        starts_at=newest.period_start,
        ends_at=newest.period_end,
        renews=subscription.renews(),
        resets_at=max(newest.period_end, subscription.current_period_end),
    )


def newest_payout(*, subscription: Subscription) -> Payout | None:
    """Return the payout of the latest period that was collected for the subscription."""
    return subscription.payouts.order_by("-period_end", "-pk").first()
