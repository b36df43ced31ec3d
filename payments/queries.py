"""What others ask about payments. Nothing here writes."""

from decimal import Decimal
from typing import NamedTuple

from gateway.common import db
from payments.amounts import MINOR_UNITS
from payments.models import ReconciliationRun, Subscription
from users.models import User


def monthly_amount_of(user: User) -> Decimal:
    """Return what the user's living subscription costs a month, in major units; 0 without one."""
    living = Subscription.objects.living().filter(user_id=user.pk)
    amount_minor = living.values_list("amount_minor", flat=True).first()
    return Decimal(amount_minor or 0) / MINOR_UNITS


class Figures(NamedTuple):
    """The state of payments at one moment. Ages are in seconds, 0 where nothing waits."""

    received_events: int
    failed_events: int
    # Of the oldest event that is not done with.
    oldest_event_age: float
    pending_operations: int
    oldest_operation_age: float


def figures() -> Figures:
    """Return the state of payments, in one statement that reads only what is not done with."""
    return Figures(*db.only_row(_FIGURES, {}))


_FIGURES = """
SELECT event.*, operation.*
FROM (SELECT count(*) FILTER (WHERE status = 'received'), count(*) FILTER (WHERE status = 'failed'),
             coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(received_at))), 0)::float
      FROM payments_stripeevent WHERE status IN ('received', 'failed')) AS event,
     (SELECT count(*), coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(created_at))), 0)::float
      FROM payments_billingoperation WHERE status = 'pending') AS operation
"""


def last_reconciliation() -> ReconciliationRun | None:
    """Return the newest finished comparison with Stripe, without its findings."""
    finished = ReconciliationRun.objects.filter(kind=ReconciliationRun.Kind.STRIPE, finished_at__isnull=False)
    return finished.defer("findings").order_by("-started_at").first()
