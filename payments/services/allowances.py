"""What the lower floors know about payments: the allowance of the period that was paid last."""

from dataclasses import asdict

from credits.benefits import PaidPeriod
from credits.services import allowance
from gateway.common.owner import ProfileOwner
from payments.models import Payout


def follow_payouts(*, user: ProfileOwner) -> None:
    """
    Bring the user's allowance in line with the newest payout and its subscription; in the caller's transaction.

    It is a function of the rows alone, so the order in which they were written does not matter.
    """
    newest = newest_payout(user=user)
    if newest is None:
        return
    period = period_of(payout=newest, is_taken_back=newest.is_taken_back())
    allowance.set_allowance(user=user, **asdict(period))


def period_of(*, payout: Payout, is_taken_back: bool) -> PaidPeriod:
    """
    Return the paid period of a user whose newest payout this is.

    It ends early where the subscription was ended at once, and has never begun where the whole payout
    was taken back.
    """
    subscription, ends_at = payout.subscription, payout.period_end
    if is_taken_back:
        ends_at = payout.period_start
    elif subscription.ended_at is not None:
        ends_at = max(payout.period_start, min(subscription.ended_at, ends_at))
    is_whole = ends_at == payout.period_end
    return PaidPeriod(
        credits=payout.credits,
        starts_at=payout.period_start,
        ends_at=ends_at,
        renews=is_whole and subscription.renews(),
        resets_at=max(ends_at, subscription.current_period_end) if is_whole else ends_at,
    )


def newest_payout(*, user: ProfileOwner) -> Payout | None:
    """Return the payout of the latest period; of two that begin together, that of the later subscription."""
    found = Payout.objects.filter(user_id=user.pk).select_related("subscription")
    return found.order_by("-period_start", "-subscription_id", "-pk").first()
