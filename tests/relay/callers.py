"""Users as callers of the relay."""

from collections.abc import Sequence
from datetime import datetime
from unittest.mock import patch
from uuid import UUID

from django.utils import timezone

from gateway.chain.lsp25 import RelayCall
from relay.queries.reports import TransactionReport, transaction_report
from relay.services.accepting import submission, together
from relay.services.accepting.batching import Batcher
from relay.services.accepting.calls import Caller, Step, SubmittedCall
from relay.services.accepting.together import Progress, advance
from sponsors.services.paying import SponsorChoice
from users.models import User


def execute(
    *, user: User, call: RelayCall, now: datetime, is_signed_in: bool = True, quote_id: UUID | None = None
) -> str:
    """Hand in a call of the user's profile; return its hash."""
    caller = Caller(user.pk, str(user.profile_address), is_signed_in=is_signed_in)
    return submission.execute(caller=caller, call=call, now=now, quote_id=quote_id)


def report_of(*, user: User, transaction_hash: str) -> TransactionReport:
    """Ask for the status of a transaction, as one of the user's."""
    return transaction_report(
        user_id=user.pk, session_id=None, transaction_hash=transaction_hash, now=timezone.now()
    )


def execute_elsewhere(*, user: User, call: RelayCall, now: datetime) -> str:
    """Hand in a call to another process, which waits for nothing that this one is doing."""
    one = Batcher(together.advance, most=1)
    with patch.object(together, "batcher", lambda _chain_id: one):
        return execute(user=user, call=call, now=now)


def begin(
    user: User, call: RelayCall, *, profile_address: str | None = None, sponsor: SponsorChoice | None = None
) -> Progress:
    """Begin the story of a call for the user's or another profile: rows are read, the key manager is verified."""
    caller = Caller(user.pk, profile_address or str(user.profile_address))
    submitted = SubmittedCall(caller, *submission.identify(call=call), timezone.now(), sponsor=sponsor)
    progress = Progress(submitted, submission.story(submitted))
    together._do(Step.ROWS, together._read_rows, [progress])
    if not submitted.rows.is_pair_known and progress.step is Step.ALONE:
        progress.resume()
    return progress


def pass_together(*progresses: Progress, staying: set[int] | None = None) -> Sequence[Progress]:
    """Take these through one pass, what threads that wait for each other do; all callers stay by default."""
    return advance(progresses, lambda: set(range(len(progresses))) if staying is None else staying)


def finish(progress: Progress) -> str | Exception:
    """Take a call to its end, as its own thread does; return its hash or error."""
    while progress.result is None:
        if progress.step is Step.ALONE:
            progress.resume()
        else:
            pass_together(progress)
    return progress.result
