"""Sign-in: a challenge valid for one attempt, the signature of a controller, and a session."""

import logging
import math
import secrets
import string
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction

from gateway.chain.config import get_chain
from gateway.chain.errors import NodeUnavailable
from gateway.chain.mistakes import SignedForOtherChain
from gateway.chain.signatures import LUKSO_CHAIN_IDS, normalise_signature
from gateway.common import db
from gateway.common.statements import Statements
from users import queries
from users.errors import (
    ChallengeExpired,
    ChallengeForeign,
    ChallengeUnknown,
    ChallengeUsed,
    ProfileNotDeployed,
    SignatureNotByController,
)
from users.models import SignInChallenge
from users.services import controllers, sessions
from users.services.sessions import TokenPair

logger = logging.getLogger(__name__)

STATEMENT = "Sign in to the credit relay gateway. This costs nothing and sends no transaction."
MAX_OPEN_PER_CLIENT = 20
# If a profile has more open challenges, some are deleted, first those of the clients and sites with the most.
MAX_OPEN_PER_PROFILE = 10_000
# The part of the limit to delete at a time, so that not every request must delete.
_PART_DELETED = 0.1
_KEPT_AFTER_EXPIRY = timedelta(hours=1)
_ALPHABET = string.ascii_letters + string.digits
# 22 characters out of 62 have 131 bits.
_NONCE_LETTERS = 22
# The suffix of ERC-6492 signatures for contracts that are not deployed yet.
_WRAPPED_SUFFIX = bytes.fromhex("6492" * 16)


class _Sql(Statements, file=__file__):
    delete_surplus: str


def request_challenge(*, profile_address: str, client: str, site: str, now: datetime) -> SignInChallenge:
    """
    Return a new challenge for the profile, unless a quick probe of a node shows that the address has no profile.

    Raises:
        ProfileNotDeployed, UntrustedCode: there is no profile. If no node responds in time, the challenge is issued.
    """
    controllers.require_profile_code(profile_address=profile_address)
    return issue_challenge(profile_address=profile_address, client=client, site=site, now=now)


def issue_challenge(*, profile_address: str, client: str, site: str = "", now: datetime) -> SignInChallenge:
    """
    Return a new challenge for the profile without checking that it exists.

    A client has at most `MAX_OPEN_PER_CLIENT` open challenges of a profile; beyond that, its
    oldest ones are deleted. A profile has about `MAX_OPEN_PER_PROFILE`; beyond that, challenges of clients and sites
    with many newer ones are deleted first. No caller is therefore refused, and a caller who floods a profile deletes
    only their own challenges, not the owner's.
    """
    nonce = "".join(secrets.choice(_ALPHABET) for _ in range(_NONCE_LETTERS))
    expires_at = now + settings.AUTH_CHALLENGE_LIFETIME
    message = _message(profile_address=profile_address, nonce=nonce, issued_at=now, expires_at=expires_at)
    with transaction.atomic(durable=True):
        challenge = SignInChallenge.objects.create(
            nonce=nonce,
            profile_address=profile_address,
            message=message,
            client=client,
            site=site,
            issued_at=now,
            expires_at=expires_at,
        )
        _delete_oldest(profile_address, client, now)
        _delete_surplus(profile_address, now)
    return challenge


def _message(*, profile_address: str, nonce: str, issued_at: datetime, expires_at: datetime) -> str:
    """Return the EIP-4361 ("Sign-In with Ethereum") text that a wallet displays and signs."""
    return "\n".join(
        [
            f"{settings.AUTH_DOMAIN} wants you to sign in with your Ethereum account:",
            profile_address,
            "",
            STATEMENT,
            "",
            f"URI: {settings.PUBLIC_URL}",
            "Version: 1",
            _chain_line(get_chain().id),
            f"Nonce: {nonce}",
            f"Issued At: {_rfc3339(issued_at)}",
            f"Expiration Time: {_rfc3339(expires_at)}",
        ]
    )


def _chain_line(chain_id: int) -> str:
    return f"Chain ID: {chain_id}"


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _delete_oldest(profile_address: str, client: str, now: datetime) -> None:
    challenges = SignInChallenge.objects.open(now=now).filter(profile_address=profile_address, client=client)
    newest = challenges.order_by("-issued_at", "-pk").values("pk")[:MAX_OPEN_PER_CLIENT]
    challenges.exclude(pk__in=newest).delete()


def _delete_surplus(profile_address: str, now: datetime) -> None:
    """If too many of a profile's challenges are open, delete those of the clients and sites with the most."""
    surplus = SignInChallenge.objects.open(now=now).filter(profile_address=profile_address).count()
    surplus -= MAX_OPEN_PER_PROFILE
    if surplus > 0:
        part = math.ceil(MAX_OPEN_PER_PROFILE * _PART_DELETED)
        db.all_rows(
            _Sql.delete_surplus, {"profile": profile_address, "now": now, "count": max(surplus, part)}
        )


def consume_challenge(*, nonce: str, profile_address: str | None, now: datetime) -> SignInChallenge:
    """
    Use up the challenge of this nonce.

    A conditional UPDATE lets only one of several concurrent requests succeed. If the
    client sent a `profile_address`, it must be the challenge's.

    Raises:
        ChallengeUnknown, ChallengeExpired, ChallengeUsed: there is no open challenge of this nonce.
        ChallengeForeign: the nonce was issued for another profile; it stays open.
    """
    challenges = SignInChallenge.objects.filter(nonce=nonce)
    if profile_address is not None:
        challenges = challenges.filter(profile_address=profile_address)
    taken = challenges.open(now=now).update(consumed_at=now)
    challenge = SignInChallenge.objects.filter(nonce=nonce).first()
    if challenge is None:
        raise ChallengeUnknown("Request a new nonce at /api/auth/nonce.")
    if taken:
        return challenge
    if profile_address not in {None, challenge.profile_address}:
        raise ChallengeForeign("The nonce was issued for another profile.")
    if challenge.consumed_at is not None:
        raise ChallengeUsed("A nonce is valid for one attempt. Request a new one.")
    raise ChallengeExpired("The nonce has expired. Request a new one.")


def sign_in(
    *,
    nonce: str,
    signature: bytes,
    client: str,
    now: datetime,
    profile_address: str | None = None,
    origin: str = "",
) -> TokenPair:
    """
    Open a session for the profile whose challenge a controller signed, for the wallet app at `origin`.

    The first sign-in of a profile also creates its user and its credit account.

    Raises:
        UnusableSignature: the signature is malformed; the nonce stays open.
        ChallengeUnknown, ChallengeExpired, ChallengeUsed, ChallengeForeign: the nonce cannot be used for this message.
        NodeUnavailable: no node responds; the nonce is used up.
        ProfileNotDeployed, UntrustedCode: the address is not a trusted profile.
        SignatureNotByController, SignPermissionMissing: the signing key lacks the permission.
        SignedForOtherChain: a controller signed the message with another chain id.
    """
    # 1. Refuse malformed signatures before anything is written.
    if signature.endswith(_WRAPPED_SUFFIX):
        raise ProfileNotDeployed(
            "Signatures of profiles that are not deployed yet (ERC-6492) are not accepted."
        )
    plain = normalise_signature(signature, chain_id=get_chain().id)
    # 2. Use up the nonce before any node request, so that no attempt can be repeated.
    challenge = consume_challenge(nonce=nonce, profile_address=profile_address, now=now)
    # 3. Read the chain, outside any transaction.
    try:
        controller = controllers.recover_controller(
            profile_address=challenge.profile_address, message=challenge.message, signature=plain
        )
    except NodeUnavailable as error:
        # After other 503s, callers resend the same request. Here they cannot, because the nonce is used up.
        detail = "No chain node responds, and the nonce is used up. Wait, request a new nonce and sign its message."
        raise NodeUnavailable(detail, retry_after=error.retry_after) from error
    except SignatureNotByController as error:
        if _signed_another(challenge, plain, client, now):
            raise ChallengeForeign(
                "The message of another open nonce was signed. Send that nonce."
            ) from error
        _require_our_chain(challenge, plain)
        raise
    # 4. Write.
    return sessions.start(
        profile_address=challenge.profile_address, controller=controller, now=now, origin=origin
    )


def _signed_another(challenge: SignInChallenge, signature: bytes, client: str, now: datetime) -> bool:
    try:
        return any(
            controllers.is_valid_signature(
                profile_address=other.profile_address, message=other.message, signature=signature
            )
            for other in queries.other_open_challenges(challenge=challenge, client=client, now=now)
        )
    except NodeUnavailable:
        return False


def _require_our_chain(challenge: SignInChallenge, signature: bytes) -> None:
    """Refuse a message in which the wallet has replaced the chain id with that of its own network."""
    ours = get_chain().id
    messages = {
        challenge.message.replace(f"\n{_chain_line(ours)}\n", f"\n{_chain_line(other)}\n"): other
        for other in LUKSO_CHAIN_IDS
        if other != ours
    }
    try:
        message = controllers.signed_by_controller(
            profile_address=challenge.profile_address, messages=list(messages), signature=signature
        )
    except NodeUnavailable:
        return
    if message is not None:
        raise SignedForOtherChain(
            f"The message was signed with chain id {messages[message]}. Switch the wallet to chain id {ours}, request "
            "a new nonce, and sign its message unchanged."
        )


def purge(*, now: datetime) -> None:
    """Delete challenges and sessions that ended long ago."""
    logger.info("purged %d challenges and %d sessions", purge_challenges(now=now), sessions.purge(now=now))


def purge_challenges(*, now: datetime) -> int:
    """Delete challenges that expired a while ago; return how many. They are kept that long for precise errors."""
    deleted, _ = SignInChallenge.objects.filter(expires_at__lt=now - _KEPT_AFTER_EXPIRY).delete()
    return deleted
