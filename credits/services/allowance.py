"""Record until when a user is subscribed, and with how many credits, for the rest of the service."""

from datetime import datetime

from credits.services import statements
from gateway.common import db
from users.models import User


def set_allowance(
    *,
    user: User,
    credits: int,
    starts_at: datetime,
    ends_at: datetime,
    renews: bool,
    resets_at: datetime | None = None,
) -> bool:
    """
    Store the period a user has paid for; `credits` were paid out for it.

    `renews` while the subscription is active or past due and not cancelling: the allowance then outlives
    `ends_at` by `RENEWAL_GRACE`. `resets_at` is the end of the provider's current period, where that is later
    than `ends_at`. Returns False and changes nothing where a period that starts later is known.
    """
    params = {
        "user": user.pk,
        "credits": credits,
        "starts_at": starts_at,
        "ends_at": ends_at,
        "resets_at": max(resets_at or ends_at, ends_at),
        "renews": renews,
    }
    return db.first_row(statements.SET_ALLOWANCE, params) is not None
