"""Errors of sign-in and access tokens. Their docstrings are public documentation."""

from gateway.common.errors import DomainError, NotAuthenticated


class UntrustedCode(DomainError):
    """
    The profile or its key manager does not run a contract implementation that this service has vetted.

    `profileCode` and `keyManagerCode` name what they run: the address of the implementation, or the hash of
    code that is deployed whole. Ask the operator to vet it.
    """

    code, title, status = "untrusted-code", "The contract code is not trusted here", 403


class SignPermissionMissing(DomainError):
    """The `controller` signed well but lacks SIGN. Grant it on the profile or use another controller."""

    code, title, status = "sign-permission-missing", "The controller may not sign", 403


class SignInRefused(DomainError):
    """Base class of the errors of signing in and refreshing; never raised itself."""

    status = 401


class ChallengeUnknown(SignInRefused):
    """This nonce was never issued here, or newer ones of the same caller pushed it out. Ask for a new one."""

    code, title = "nonce-unknown", "The nonce is not known"


class ChallengeExpired(SignInRefused):
    """The nonce was signed too late. Ask for a new one and sign its message before `expiresAt`."""

    code, title = "nonce-expired", "The nonce has expired"


class ChallengeUsed(SignInRefused):
    """The nonce served for one attempt already, whatever became of that. Ask for a new one."""

    code, title = "nonce-used", "The nonce was used before"


class ChallengeForeign(SignInRefused):
    """
    The nonce belongs to another profile or another message than the one that was signed.

    Send the nonce that came with the signed message, and the address it was asked for.
    """

    code, title = "nonce-foreign", "The nonce belongs to another message"


class SignatureNotByController(SignInRefused):
    """
    The key that signed, `recovered`, is no controller of the profile.

    Sign the message text exactly as it was received, with `personal_sign` or `eth_sign`, by a controller key.
    """

    code, title = "signature-not-by-controller", "The signature is not a controller's"


class ProfileNotDeployed(DomainError):
    """
    There is no contract at the address, so nothing can vouch for a signature.

    Deploy the profile first. Plain accounts, and signatures wrapped for undeployed ones (ERC-6492), cannot
    sign in.
    """

    code, title, status = "profile-not-deployed", "The profile is not deployed", 422


class AccountInactive(NotAuthenticated):
    """Support has closed this account. Write to support."""

    code, title = "account-inactive", "The account is closed"


class AccountDeleted(NotAuthenticated):
    """
    The owner of this profile has deleted the account here, and what it holds is still being erased.

    That takes up to an hour as a rule. Then the profile can sign in again as a new one, without anything of before.
    """

    code, title = "account-deleted", "The account is being deleted"


class FreshSignInRequired(DomainError):
    """
    The request cannot be undone, so it takes a sign-in that is at most `maxAgeSeconds` old.

    Sign in again, by a message signed for `/api/auth/verify`, and repeat the request with the new token. An access
    token that was refreshed is as old as its session; one of an external issuer never is fresh.
    """

    code, title, status = "fresh-sign-in-required", "Sign in again for this", 403


class RefreshTokenUnknown(SignInRefused):
    """This refresh token was never issued here, or its session ended long ago. Sign in again."""

    code, title = "refresh-token-unknown", "The refresh token is not known"


class RefreshTokenReused(SignInRefused):
    """
    The refresh token was exchanged before, so somebody holds a copy; its session has ended for everyone.

    Sign in again. Keep the newest refresh token only, and send it once.
    """

    code, title = "refresh-token-reused", "The refresh token was used before"


class ControllerRevoked(SignInRefused):
    """The controller no longer holds SIGN, or the profile is not its key manager's any more; the session has ended."""

    code, title = "controller-revoked", "The controller may no longer sign"


class SessionEnded(NotAuthenticated):
    """The session was signed out, revoked or has run its full time. Sign in again."""

    code, title = "session-ended", "The session has ended"


class AccessTokenMalformed(NotAuthenticated):
    """The header carries no JSON Web Token with the claims that an access token has."""

    code, title = "access-token-malformed", "The access token cannot be read"


class AccessTokenExpired(NotAuthenticated):
    """The access token has run out. Exchange the refresh token at `/api/auth/refresh`."""

    code, title = "access-token-expired", "The access token has expired"


class AccessTokenAlgorithmRefused(NotAuthenticated):
    """The token is signed by an algorithm that its issuer does not use here, or not at all."""

    code, title = "access-token-algorithm-refused", "The token's algorithm is not accepted"


class AccessTokenKeyUnknown(NotAuthenticated):
    """The token's `kid` names no key of its issuer. Our own keys are listed at `/.well-known/jwks.json`."""

    code, title = "access-token-key-unknown", "The token's key is not known"


class AccessTokenSignatureInvalid(NotAuthenticated):
    """The token was changed after it was signed, or another key signed it."""

    code, title = "access-token-signature-invalid", "The token's signature is wrong"


class AccessTokenIssuerRefused(NotAuthenticated):
    """The token's `iss` is no issuer that this service accepts."""

    code, title = "access-token-issuer-refused", "The token's issuer is not accepted"


class AccessTokenAudienceRefused(NotAuthenticated):
    """The token's `aud` is not this service."""

    code, title = "access-token-audience-refused", "The token is for another service"


class AccessTokenKindRefused(NotAuthenticated):
    """The token is not an access token. A refresh token goes into the body of `/api/auth/refresh`."""

    code, title = "access-token-kind-refused", "This is not an access token"


class StaffStarted(DomainError):
    """The first two members of staff are made at a shell; everybody else is asked for in the admin and approved."""

    code, title, status = "staff-started", "Staff begin with two people", 409
