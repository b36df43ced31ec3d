"""The allowance: the end of a user's paid period, and its credits."""

from dataclasses import asdict

from credits.queries import PaidPeriod
from credits.services.statements import Sql
from gateway.common import db
from users.models import User


def set_allowance(*, user: User, period: PaidPeriod) -> None:
    """Store a user's paid period in place of the previous one; the caller decides which period counts."""
    db.first_row(Sql.set_allowance, {"user": user.pk, **asdict(period)})
