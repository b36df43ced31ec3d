"""Paid periods for tests."""

from datetime import datetime

from credits.queries import PaidPeriod
from credits.services import allowance
from users.models import User


def set_allowance(
    *,
    user: User,
    credits: int,
    starts_at: datetime,
    ends_at: datetime,
    renews: bool,
    resets_at: datetime | None = None,
) -> None:
    """Store a paid period, after which nothing is paid unless `resets_at` is given."""
    period = PaidPeriod(
        credits=credits,
        starts_at=starts_at,
        ends_at=ends_at,
        resets_at=resets_at or ends_at,
        renews=renews,
    )
    allowance.set_allowance(user=user, period=period)
