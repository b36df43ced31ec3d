"""Users as callers of the relay."""

from datetime import datetime
from unittest.mock import patch

from gateway.chain.lsp25 import RelayCall
from gateway.common.batching import Together
from relay.services import acceptance, submission
from relay.services.acceptance import Caller
from users.models import User


def execute(*, user: User, call: RelayCall, now: datetime, is_signed_in: bool = True) -> str:
    """Hand in a call of the user's profile; return the hash that is answered."""
    caller = Caller(user.pk, str(user.profile_address), is_signed_in=is_signed_in)
    return submission.execute(caller=caller, call=call, now=now)


def execute_elsewhere(*, user: User, call: RelayCall, now: datetime) -> str:
    """Hand in a call to another process, which waits for nothing that this one is doing."""
    with (
        patch.object(submission, "_look", Together(submission._look_together, most=1)),
        patch.object(submission, "accept", Together(acceptance.accept_together, most=1)),
    ):
        return execute(user=user, call=call, now=now)
