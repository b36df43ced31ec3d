"""The sign-in: a challenge, a signature, a session."""

from datetime import datetime

from gateway.chain.errors import NodeUnavailable
from gateway.chain.signatures import normalise_signature
from users import queries
from users.errors import ChallengeForeign, ProfileNotDeployed, SignatureNotByController
from users.models import SignInChallenge
from users.services import challenges, controllers, sessions
from users.services.sessions import TokenPair

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
    challenge = challenges.consume(nonce=nonce, profile_address=profile_address, now=now)
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
