"""Cancelling by staff: a call that was signed and never broadcast ends like any other dead end."""

from datetime import datetime

from gateway.chain.client import get_chain_client
from relay.errors import AlreadyBroadcast
from relay.models import Attempt, RelayTransaction
from relay.services import dead_ends
from relay.services.fees import fees_today

_Status = RelayTransaction.Status


def may_be_cancelled(row: RelayTransaction) -> bool:
    """Return whether the call is in progress and nothing of it was ever broadcast, as the rows say now."""
    return row.is_in_progress and not row.ends_as and not row.attempts.exclude(first_sent_at=None).exists()


def cancel_unsent(*, relay_transaction_id: int, now: datetime) -> None:
    """
    Use up the call's account nonce by a self-transfer, so that the call ends as Cancelled once that is confirmed.

    Raises:
        AlreadyBroadcast: the call was broadcast, is ended, or is being ended; nothing changes.
        NodeUnavailable: no node answered, so today's fees are unknown.
    """
    row = RelayTransaction.objects.get(pk=relay_transaction_id)
    if not may_be_cancelled(row):
        raise AlreadyBroadcast
    begun = dead_ends.begin(
        attempt=Attempt.objects.filter(relay_transaction=row).latest("sequence"),
        ends_as=_Status.CANCELLED,
        code="cancelled-by-staff",
        detail="Staff cancelled it before it was sent.",
        fees=fees_today(head=get_chain_client().head()),
        now=now,
        only_unsent=True,
    )
    if not begun:
        raise AlreadyBroadcast
