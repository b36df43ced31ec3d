"""What the lower floors learn of payments: the allowance of the period that was paid last."""

from dataclasses import asdict, dataclass
from datetime import datetime

from credits.services import allowance
from gateway.common.owner import ProfileOwner
from payments.models import Payout


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidAllowance:
    """What `credits.services.allowance` is told of a payout's period."""

    credits: int
    starts_at: datetime
    ends_at: datetime
    renews: bool
    resets_at: datetime


def follow_payouts(*, user: ProfileOwner) -> None:
    """
    Bring the user's allowance in line with the newest payout and its subscription; in the caller's transaction.

    It is a function of the rows alone, so the order in which they were written does not matter.
    """
    newest = newest_payout(user=user)
    if newest is None:
        return
    told = allowance_of(payout=newest, is_taken_back=newest.is_taken_back())
    allowance.set_allowance(user=user, **asdict(told))


def allowance_of(*, payout: Payout, is_taken_back: bool) -> PaidAllowance:
    """
    Return the allowance that a user has whose newest payout this is.

    That of a subscription that was ended at once ends then, and that of a payout that was taken back
    whole has never begun.
    """
    subscription, ends_at = payout.subscription, payout.period_end
    if is_taken_back:
        ends_at = payout.period_start
    elif subscription.ended_at is not None:
        ends_at = max(payout.period_start, min(subscription.ended_at, ends_at))
    is_whole = ends_at == payout.period_end
    return PaidAllowance(
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
