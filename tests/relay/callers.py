"""Users as callers of the relay."""

from datetime import datetime
from unittest.mock import patch
from uuid import UUID

from django.utils import timezone

from gateway.chain.lsp25 import RelayCall
from relay.queries.reports import TransactionReport, transaction_report
from relay.services.accepting import submission
from relay.services.accepting.batching import Batcher
from relay.services.accepting.calls import Caller
from users.models import User


def execute(
    *, user: User, call: RelayCall, now: datetime, is_signed_in: bool = True, quote_id: UUID | None = None
) -> str:
    """Hand in a call of the user's profile; return the hash that is answered."""
    caller = Caller(user.pk, str(user.profile_address), is_signed_in=is_signed_in)
    return submission.execute(caller=caller, call=call, now=now, quote_id=quote_id)


def report_of(*, user: User, transaction_hash: str) -> TransactionReport:
    """Ask for the status of a transaction, as one of the user's."""
    return transaction_report(
        user_id=user.pk, session_id=None, transaction_hash=transaction_hash, now=timezone.now()
    )


def execute_elsewhere(*, user: User, call: RelayCall, now: datetime) -> str:
    """Hand in a call to another process, which waits for nothing that this one is doing."""
    with patch.object(submission, "relay_batched", Batcher(submission.relay_together, most=1)):
        return execute(user=user, call=call, now=now)
