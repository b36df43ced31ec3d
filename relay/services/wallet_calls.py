"""
Callers without a token: everything that needs no node comes before a node is asked.

Such a request costs its sender nothing, so it is judged by form, then counted by who
signed it, and only then looked into. The relay nonces of a profile are public, and
so are the signed calls that were mined: a known call answers its hash uncounted, and
one that failed is refused uncounted, so that nobody uses up a signer's rate by
repeating them.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from gateway.chain.lsp15 import quota_digests
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signatures import normalise_signature, recover_address
from gateway.common.owner import ProfileOwner
from relay import queries
from relay.errors import KeyManagerNotFound, KeyManagerNotOwner
from relay.services import budgets, execution, key_managers, preflight, quota

# Counts a request of this signer, or of one who is new to the profile; raises where there are too many.
Admit = Callable[[str | None], None]


def execute(*, user: ProfileOwner, call: RelayCall, now: datetime, admit: Admit) -> str:
    """
    Relay a call for the user's profile whatever key manager it names, and return the transaction's hash.

    Raises:
        DomainError: the call was refused, or `admit` refused the signer; nothing is stored, held or sent.
    """
    execution.identify(call=call)
    preflight.check_validity(call=call, now=int(now.timestamp()))
    known = key_managers.remembered(user=user)
    if known is None:
        admit(None)
        return _execute(user, _addressed(user, call), now)
    call, identity = execution.identify(call=replace(call, key_manager=known))
    before = queries.look_up(user=user, identity=identity)
    if before.transaction_hash is not None:
        return before.transaction_hash
    # Before it is counted: strangers who repeat a failed call use up nobody's rate.
    budgets.check_failures(known=before)
    admit(key_managers.has_signed_here(key_manager=known, signers=[identity.controller]))
    try:
        return _execute(user, call, now)
    except (KeyManagerNotFound, KeyManagerNotOwner):
        # The profile has moved to another key manager since its last call here.
        moved = _addressed(user, call)
        if moved.key_manager == known:
            raise
        return _execute(user, moved, now)


def _execute(user: ProfileOwner, call: RelayCall, now: datetime) -> str:
    return execution.execute(user=user, call=call, now=now, is_signed_in=False)


def _addressed(user: ProfileOwner, call: RelayCall) -> RelayCall:
    return replace(call, key_manager=key_managers.of_profile(profile=str(user.profile_address)))


def read_quota(
    *, user: ProfileOwner, timestamp: int, signature: bytes, now: datetime, admit: Admit
) -> quota.Quota:
    """
    Return the quota of the user's profile, if a controller with SIGN asks for it within the time window.

    Raises:
        TimestampOutOfWindow, UnusableSignature, QuotaSignatureInvalid, SignPermissionMissing.
        NodeUnavailable: no node answered.
        DomainError: `admit` refused the signer.
    """
    quota.check_timestamp(timestamp=timestamp, now=now)
    normalised = normalise_signature(signature)
    signers = [
        recover_address(digest, normalised)
        for digest in quota_digests(address=str(user.profile_address), timestamp=timestamp)
    ]
    known = key_managers.remembered(user=user)
    admit(known and key_managers.has_signed_here(key_manager=known, signers=signers))
    return quota.signed_quota(user=user, timestamp=timestamp, signature=signature, now=now)
