"""
Requests without a token (LSP-15): every check that needs no node comes before the first node read.

Such a request costs its sender nothing. The service therefore checks its form first, then counts
it against its signer's rate limit, and only then queries a node. A profile's relay nonces and
mined calls are public, so third parties can repeat them. A repeat of an accepted call returns its
hash, and a repeat of a failed call is refused, without counting against the signer's rate limit.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from gateway.chain.config import get_chain
from gateway.chain.lsp25 import RelayCall
from relay.errors import KeyManagerNotFound, KeyManagerNotOwner, ProfileNotRegistered
from relay.models import RelayTransaction
from relay.queries.calls import CallKey, registered_owner, rows_of_calls
from relay.services.accepting import limits, preflight, quota, submission
from relay.services.accepting.calls import Caller
from sponsors.services.paying import SponsorChoice
from users.models import User

# Counts a request of this signer, or of a signer new to the profile (None); raises if the rate limit is reached.
Admit = Callable[[str | None], None]


def execute(
    *,
    user: User,
    call: RelayCall,
    key_manager: str | None,
    now: datetime,
    admit: Admit,
    sponsor: SponsorChoice | None = None,
) -> str:
    """
    Relay a call for the user's profile and return the transaction's hash.

    If the caller names no key manager, the service looks up the profile's; a named one must be the profile's.

    Raises:
        DomainError: the call was refused, or `admit` refused the signer; nothing is stored, held or sent.
    """
    submission.identify(call=call)
    preflight.check_validity(call=call, now=int(now.timestamp()))
    claimed, key_manager = key_manager, last_key_manager(user=user)
    if key_manager is None or claimed not in {None, key_manager}:
        admit(None)
        moved = _addressed(user, call) if claimed is None else replace(call, key_manager=claimed)
        return _execute(user, moved, sponsor, now)
    call, identity = submission.identify(call=replace(call, key_manager=key_manager))
    (rows,) = rows_of_calls([CallKey(identity, key_manager, user.pk, None, now)])
    if rows.transaction_hash is not None:
        return rows.transaction_hash
    # Checked before the request is counted, so that repeats of a failed call do not use up the signer's rate limit.
    limits.check_failures(rows=rows)
    admit(accepted_signer(key_manager=key_manager, signers=[identity.controller]))
    try:
        return _execute(user, call, sponsor, now)
    except (KeyManagerNotFound, KeyManagerNotOwner):
        # The profile may have moved to another key manager since its last call.
        moved = _addressed(user, call)
        if moved.key_manager == key_manager:
            raise
        return _execute(user, moved, sponsor, now)


def _execute(user: User, call: RelayCall, sponsor: SponsorChoice | None, now: datetime) -> str:
    return submission.execute(caller=_caller(user), call=call, now=now, sponsor=sponsor)


def _caller(user: User) -> Caller:
    return Caller(user.pk, str(user.profile_address), is_signed_in=False)


def _addressed(user: User, call: RelayCall) -> RelayCall:
    return replace(call, key_manager=preflight.owner_of(profile=str(user.profile_address)))


def read_quota(*, user: User, timestamp: int, signature: bytes, now: datetime, admit: Admit) -> quota.Quota:
    """
    Return the quota of the user's profile, if a controller with SIGN signed the request within the time window.

    Raises:
        TimestampOutOfWindow, UnusableSignature, QuotaSignatureInvalid, SignPermissionMissing.
        NodeUnavailable: no node responded.
        DomainError: `admit` refused the signer.
    """
    quota.check_timestamp(timestamp=timestamp, now=now)
    address = str(user.profile_address)
    signers = quota.signers_of(address=address, timestamp=timestamp, signature=signature)
    key_manager = last_key_manager(user=user)
    admit(key_manager and accepted_signer(key_manager=key_manager, signers=signers))
    return quota.signed_quota(caller=_caller(user), timestamp=timestamp, signature=signature, now=now)


def owner_of_profile(*, address: str, signers: Callable[[], Sequence[str]]) -> User:
    """
    Return the user of the profile.

    Raises:
        ProfileNotRegistered: the profile never signed in; the detail differs if the address is one of `signers`.
        UnusableSignature: see `recover_signers`; only for an address that never signed in.
    """
    try:
        return registered_owner(address)
    except ProfileNotRegistered:
        if address not in signers():
            raise
        detail = f"{address} is the controller that signed. Send the profile's address."
        raise ProfileNotRegistered(detail, profile=address) from None


def last_key_manager(*, user: User) -> str | None:
    """
    Return the key manager of the user's newest relay call, or None. It was the profile's when that call was sent.

    The deployment of the profile itself went to the factory, so it names no key manager.
    """
    newest = (
        RelayTransaction.objects.filter(user_id=user.pk, chain_id=get_chain().id, deploys_profile=False)
        .order_by("-id")
        .only("key_manager_address")
        .first()
    )
    return None if newest is None else newest.key_manager_address


def accepted_signer(*, key_manager: str, signers: list[str]) -> str | None:
    """Return one of `signers` with an accepted relay call through this key manager, or None."""
    accepted = RelayTransaction.objects.filter(
        chain_id=get_chain().id, key_manager_address=key_manager, controller_address__in=signers
    )
    # Without an order, PostgreSQL reads a single row of the index.
    return next(iter(accepted.values_list("controller_address", flat=True)[:1]), None)
