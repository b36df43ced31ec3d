"""
Unbacked credits: credits that the service gives in a UTC day without a payment or an earning.

They are new debt, counted by `credits_place_holds` and `credits_raise_hold`, and the credits of check-ins. One
conditional update of the day's row counts each, so concurrent ones never exceed the ceiling together.
"""

from django.db import transaction

from gateway.common import db
from gateway.common.statements import Statements


class _Sql(Statements, file=__file__):
    lock_today: str
    recount_today: str


def take_for_check_in(*, credits: int) -> bool:
    """Count the credits of a check-in for the day, in the caller's transaction; False if they exceed the ceiling."""
    (is_taken,) = db.only_row("SELECT credits_take_unbacked(0, %(credits)s)", {"credits": credits})
    return bool(is_taken)


def recount_today() -> None:
    """Reduce the day's count by the debt that holds have taken but not used."""
    with transaction.atomic(durable=True):
        # The next statement sees holds that commit while this one waits for the row.
        if db.first_row(_Sql.lock_today, {}) is not None:
            db.all_rows(_Sql.recount_today, {})
