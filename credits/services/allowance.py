"""Record until when a user is subscribed, and with how many credits, for the rest of the service."""

from dataclasses import asdict

from credits.queries import PaidPeriod
from credits.services import statements
from gateway.common import db
from users.models import User


def set_allowance(*, user: User, period: PaidPeriod) -> None:
    """Store the period a user has paid for, unless one that starts later is known."""
    db.first_row(statements.SET_ALLOWANCE, {"user": user.pk, **asdict(period)})
