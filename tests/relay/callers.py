"""Users as callers of the relay."""

from datetime import datetime

from gateway.chain.lsp25 import RelayCall
from relay.services import submission
from users.models import User


def execute(*, user: User, call: RelayCall, now: datetime, is_signed_in: bool = True) -> str:
    """Hand in a call of the user's profile; return the hash that is answered."""
    caller = submission.Caller(user.pk, str(user.profile_address), is_signed_in=is_signed_in)
    return submission.execute(caller=caller, call=call, now=now)
