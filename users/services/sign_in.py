"""
Challenges: hand out a text to sign, and take each one back at most once.

The sign-in: a challenge, a signature, a session.

What beat tidies up for sign-in.
"""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from gateway.chain.config import get_chain
from gateway.chain.errors import NodeUnavailable
from gateway.chain.signatures import normalise_signature
from gateway.common.errors import TooManyRequests
from users import queries, siwe
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

STATEMENT = "Sign in to the credit relay gateway. This costs nothing and sends no transaction."
MAX_OPEN = 20
# As many as five hundred callers at their own limit may have open for one profile.
MAX_OPEN_OF_ALL = 500 * MAX_OPEN
_FULL_FOR_SECONDS = 60
_KEPT_AFTER_EXPIRY = timedelta(hours=1)


def issue(*, profile_address: str, client: str, now: datetime) -> SignInChallenge:
    """
    Return a new challenge for the profile, whether or not it exists on chain.

    A caller has at most `MAX_OPEN` open ones of a profile; its own oldest make
    room. Nobody else's do, or a stranger could keep the profile from signing in.

    Raises:
        TooManyRequests: too many callers have challenges open for this profile.
    """
    if (
        SignInChallenge.objects.open(now=now).filter(profile_address=profile_address).count()
        >= MAX_OPEN_OF_ALL
    ):
        raise TooManyRequests(
            "Too many sign-ins of this profile are open. Repeat later.", retry_after=_FULL_FOR_SECONDS
        )
    nonce, expires_at = siwe.new_nonce(), now + settings.AUTH_CHALLENGE_LIFETIME
    message = siwe.compose(
        domain=settings.AUTH_DOMAIN,
        address=profile_address,
        statement=STATEMENT,
        uri=settings.PUBLIC_URL,
        chain_id=get_chain().id,
        nonce=nonce,
        issued_at=now,
        expires_at=expires_at,
    )
    with transaction.atomic(durable=True):
        challenge = SignInChallenge.objects.create(
            nonce=nonce,
            profile_address=profile_address,
            message=message,
            client=client,
            issued_at=now,
            expires_at=expires_at,
        )
        _make_room(profile_address, client, now)
    return challenge


def _make_room(profile_address: str, client: str, now: datetime) -> None:
    open_ones = SignInChallenge.objects.open(now=now).filter(profile_address=profile_address, client=client)
    newest = open_ones.order_by("-issued_at", "-pk").values("pk")[:MAX_OPEN]
    open_ones.exclude(pk__in=newest).delete()


def consume(*, nonce: str, profile_address: str | None, now: datetime) -> SignInChallenge:
    """
    Take the challenge of this nonce, for this caller alone.

    One conditional UPDATE decides between simultaneous callers. `profile_address`,
    where the client sent it, must be the challenge's.

    Raises:
        ChallengeUnknown, ChallengeExpired, ChallengeUsed: there is nothing to take.
        ChallengeForeign: the nonce was issued for another profile; it stays open.
    """
    mine = SignInChallenge.objects.filter(nonce=nonce)
    if profile_address is not None:
        mine = mine.filter(profile_address=profile_address)
    taken = mine.open(now=now).update(consumed_at=now)
    challenge = SignInChallenge.objects.filter(nonce=nonce).first()
    if challenge is None:
        raise ChallengeUnknown("Ask for a new nonce at /api/auth/nonce.")
    if taken:
        return challenge
    if profile_address not in {None, challenge.profile_address}:
        raise ChallengeForeign("The nonce was issued for another profile.")
    if challenge.consumed_at is not None:
        raise ChallengeUsed("A nonce is good for one attempt. Ask for a new one.")
    raise ChallengeExpired("The nonce was answered too late. Ask for a new one.")


def purge(*, now: datetime) -> int:
    """Delete challenges that expired a while ago and return how many; until then their refusals stay exact."""
    deleted, _ = SignInChallenge.objects.filter(expires_at__lt=now - _KEPT_AFTER_EXPIRY).delete()
    return deleted


# ERC-6492 ends a signature for a contract that is not deployed yet with this word.
_WRAPPED_SUFFIX = bytes.fromhex("6492" * 16)


def sign_in(
    *, nonce: str, signature: bytes, client: str, now: datetime, profile_address: str | None = None
) -> TokenPair:
    """
    Open a session for the profile whose challenge a controller signed.

    The first sign-in of a profile also makes its user and its credit account.

    Raises:
        UnusableSignature: the bytes are no signature; the nonce stays open.
        ChallengeUnknown, ChallengeExpired, ChallengeUsed, ChallengeForeign: the nonce is not this message's.
        NodeUnavailable: no node answers; the nonce is used up nevertheless.
        ProfileNotDeployed, UntrustedCode: the address is no profile that can be believed.
        SignatureNotByController, SignPermissionMissing: the key that signed may not.
        AccountInactive: support has closed the account.
    """
    # 1. Refuse what no key can have made before anything is written.
    if signature.endswith(_WRAPPED_SUFFIX):
        raise ProfileNotDeployed(
            "Signatures of profiles that are not deployed yet (ERC-6492) are not accepted."
        )
    plain = normalise_signature(signature)
    # 2. Take the nonce before the node is asked: no attempt can be repeated, whatever comes of it.
    challenge = consume(nonce=nonce, profile_address=profile_address, now=now)
    # 3. Ask the chain, outside any transaction.
    try:
        controller = controllers.prove(
            profile_address=challenge.profile_address, message=challenge.message, signature=plain
        )
    except NodeUnavailable as away:
        # "Send the same again" is what 503 says everywhere else.
        detail = "No chain node answers, and the nonce is used up. Wait, ask for a new nonce and sign that."
        raise NodeUnavailable(detail, retry_after=away.retry_after) from away
    except SignatureNotByController as refusal:
        if _signed_another(challenge, plain, client, now):
            raise ChallengeForeign("Another open nonce's message was signed. Send that nonce.") from refusal
        raise
    # 4. Write.
    return sessions.start(profile_address=challenge.profile_address, controller=controller, now=now)


def _signed_another(challenge: SignInChallenge, signature: bytes, client: str, now: datetime) -> bool:
    """Return whether the signature answers another open challenge of the same caller."""
    try:
        return any(
            controllers.signed_by_controller(
                profile_address=other.profile_address, message=other.message, signature=signature
            )
            for other in queries.other_open_challenges(challenge=challenge, client=client, now=now)
        )
    except NodeUnavailable:
        return False


logger = logging.getLogger(__name__)


def purge_sign_ins(*, now: datetime) -> None:
    """Delete challenges and sessions that ended long ago."""
    logger.info("purged %d challenges and %d sessions", purge(now=now), sessions.purge(now=now))
