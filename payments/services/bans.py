"""What a ban stops: automatic purchases at once, and renewals at the end of the paid period."""

from datetime import datetime

from django.db.models import Exists, OuterRef

from gateway.common.tasks import Sweep
from payments.models import Subscription
from payments.services import subscriptions, top_ups
from users.models import Ban, User


def stop_purchases(user: User, now: datetime) -> None:
    """Turn automatic top-up off. After the ban, only the account's owner can turn it on again."""
    top_ups.withdraw(user=user, now=now)


def end_renewals(*, now: datetime) -> int:
    """
    Cancel the subscriptions of banned people: at the end of a paid period, at once without one.

    Returns how many were cancelled. What Stripe refuses is tried again by the next run.
    """
    banned = Ban.objects.open().filter(user=OuterRef("user"))
    renewing = Subscription.objects.live().filter(Exists(banned), cancels_at_period_end=False)
    sweep = Sweep("renewal of a banned person")
    for row in renewing.select_related("user").order_by("pk"):
        with sweep.item(row.pk):
            is_paid = row.status == Subscription.Status.ACTIVE
            subscriptions.cancel(user=row.user, immediately=not is_paid, now=now)
    sweep.finish()
    return sweep.succeeded
