"""The allowance: until when a user is subscribed, and with how many credits."""

from dataclasses import asdict

from credits.queries import PaidPeriod
from credits.services import statements
from gateway.common import db
from users.models import User


def set_allowance(*, user: User, period: PaidPeriod) -> None:
    """Store the period that a user has paid for; the caller decides which one counts."""
    db.first_row(statements.SET_ALLOWANCE, {"user": user.pk, **asdict(period)})
