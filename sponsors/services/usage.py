"""Corrects the usage of policies after a person with access to the database has changed it."""

from django.db import transaction

from gateway.common import db
from gateway.common.statements import Statements


class _Sql(Statements, file=__file__):
    lock: str
    correct: str
    correct_budgets: str


@transaction.atomic
def correct() -> int:
    """Count the usage of all policies again from their calls, while new calls wait; return how many rows were wrong."""
    db.all_rows(_Sql.lock, {})
    # A statement of its own, so that it sees what others committed before they gave up the accounts.
    return len(db.all_rows(_Sql.correct, {})) + len(db.all_rows(_Sql.correct_budgets, {}))
