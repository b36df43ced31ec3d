"""Wallets that ask for quotes: prepare a call, sign what was prepared, send it with the quote."""

from dataclasses import replace
from datetime import datetime

from django.utils import timezone

from devstack.world.profiles import Profile
from relay.models import Quote, RelayTransaction
from relay.services.accepting import preparation, submission
from relay.services.accepting.calls import Caller
from relay.services.accepting.preparation import Draft, PreparedCall
from tests.relay.signing import set_data_payload, sign_digest
from users.models import User


def caller_of(user: User) -> Caller:
    """Return the user as one who has a token."""
    return Caller(user.pk, str(user.profile_address))


def prepare(
    user: User,
    profile: Profile,
    *,
    payload: bytes | None = None,
    channel: int = 0,
    now: datetime | None = None,
) -> PreparedCall:
    """Prepare a call that the first controller is to sign, by default a setData."""
    draft = Draft(payload or set_data_payload(), channel, controller=profile.controller.address)
    return preparation.prepare(caller=caller_of(user), draft=draft, now=now or timezone.now())


def execute_prepared(
    user: User,
    profile: Profile,
    prepared: PreparedCall,
    *,
    quote: Quote | None = None,
    now: datetime | None = None,
) -> RelayTransaction:
    """Sign what was prepared and hand it in with its quote, or with another; return its row."""
    quote = quote or prepared.quote
    assert quote is not None, (prepared.refusals, prepared.quote_refusal)
    signature = sign_digest(profile.controller.private_key, bytes.fromhex(prepared.identity.digest[2:]))
    transaction_hash = submission.execute(
        caller=caller_of(user),
        call=replace(prepared.call, signature=signature),
        now=now or timezone.now(),
        quote_id=quote.pk,
    )
    return RelayTransaction.objects.get(attempts__transaction_hash=transaction_hash)
