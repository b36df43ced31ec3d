"""The errors of sign-in and access tokens. Their docstrings are the public catalogue of problems."""

from gateway.common.errors import DomainError, NotAuthenticated


class UntrustedCode(DomainError):
    """
    The profile or its key manager runs a contract implementation that this service does not trust.

    `profileCode` and `keyManagerCode` name the implementations: the address that a proxy delegates to, or the hash
    of the deployed code. Ask the operator to trust them.
    """

    code, title, status = "untrusted-code", "The contract code is not trusted", 403


class SignPermissionMissing(DomainError):
    """The signature is valid, but the `controller` lacks SIGN. Grant SIGN on the profile or use another controller."""

    code, title, status = "sign-permission-missing", "The controller may not sign", 403


class SignInRefused(DomainError):
    """Base class of sign-in and refresh errors; never raised itself."""

    status = 401


class ChallengeUnknown(SignInRefused):
    """The service did not issue this nonce, or newer ones of the same caller replaced it. Request a new one."""

    code, title = "nonce-unknown", "Unknown nonce"


class ChallengeExpired(SignInRefused):
    """The nonce has expired. Request a new one and sign its message before `expiresAt`."""

    code, title = "nonce-expired", "The nonce has expired"


class ChallengeUsed(SignInRefused):
    """The nonce was already used for an attempt. Request a new one."""

    code, title = "nonce-used", "The nonce has been used"


class ChallengeForeign(SignInRefused):
    """
    The nonce belongs to another profile or to another message than the signed one.

    Send the nonce of the signed message, and the address for which it was requested.
    """

    code, title = "nonce-foreign", "The nonce belongs to another message"


class SignatureNotByController(SignInRefused):
    """
    The signing key, `recovered`, is not a controller of the profile.

    Sign the message text exactly as received, with `personal_sign` or `eth_sign`, by a controller's key.
    """

    code, title = "signature-not-by-controller", "The signature is not from a controller"


class ProfileNotDeployed(DomainError):
    """
    There is no contract at the address that could verify a signature.

    Deploy the profile first. Externally owned accounts, and undeployed profiles (ERC-6492), cannot sign in.
    """

    code, title, status = "profile-not-deployed", "The profile is not deployed", 422


class AccountInactive(NotAuthenticated):
    """Support has closed this account. Contact support."""

    code, title = "account-inactive", "The account is closed"


class AccountBanned(NotAuthenticated):
    """
    The operator has banned the account. No token, signed call, sponsor's key of its owner, or purchase is accepted.

    Credits stay on the account. Ask the operator's support; signing in again does not help.
    """

    code, title, status = "account-banned", "The account is banned", 403


class BanRefused(DomainError):
    """Staff cannot ban this account, or lift its ban; `detail` has the reason."""

    code, title, status = "ban-refused", "The ban cannot be changed", 409


class AccountDeleted(NotAuthenticated):
    """
    The owner of this profile has deleted the account, and its data is still being erased.

    This usually takes up to an hour. The profile can then sign in again with a new, empty account.
    """

    code, title = "account-deleted", "The account is being deleted"


class FreshSignInRequired(DomainError):
    """
    The request cannot be undone, so it requires a sign-in at most `maxAgeSeconds` ago.

    Sign in again through `/api/auth/verify` and repeat the request with the new token. A refreshed access token is
    as old as its session; a token of an external issuer is never recent enough.
    """

    code, title, status = "fresh-sign-in-required", "A recent sign-in is required", 403


class RefreshTokenUnknown(SignInRefused):
    """The service did not issue this refresh token, or its session ended long ago. Sign in again."""

    code, title = "refresh-token-unknown", "Unknown refresh token"


class RefreshTokenReused(SignInRefused):
    """
    The refresh token was already exchanged, so two parties may hold it; its session has ended.

    Sign in again. Store only the newest refresh token. Repeat an exchange only if its response was lost.
    """

    code, title = "refresh-token-reused", "The refresh token has been used"


class ControllerRevoked(SignInRefused):
    """
    The controller lost SIGN, or the profile has another key manager; the session has ended.

    Sign in again, with a controller that has SIGN.
    """

    code, title = "controller-revoked", "The controller may no longer sign in"


class SessionEnded(NotAuthenticated):
    """The session was signed out or revoked, or has expired. Sign in again."""

    code, title = "session-ended", "The session has ended"


class AccessTokenMalformed(NotAuthenticated):
    """The header has no JSON Web Token with the claims of an access token. Send the `access` of `/api/auth/verify`."""

    code, title = "access-token-malformed", "The access token cannot be read"


class AccessTokenExpired(NotAuthenticated):
    """The access token has expired. Exchange the refresh token at `/api/auth/refresh`."""

    code, title = "access-token-expired", "The access token has expired"


class AccessTokenAlgorithmRefused(NotAuthenticated):
    """
    The token is unsigned, or signed with an algorithm that is not accepted for its issuer.

    Send the `access` of `/api/auth/verify`, unchanged.
    """

    code, title = "access-token-algorithm-refused", "The token's algorithm is not accepted"


class AccessTokenKeyUnknown(NotAuthenticated):
    """
    The token's `kid` names no key of its issuer. Sign in again.

    Our own keys are listed at `/.well-known/jwks.json`.
    """

    code, title = "access-token-key-unknown", "Unknown signing key"


class AccessTokenSignatureInvalid(NotAuthenticated):
    """The token was changed after it was signed, or another key signed it. Send it unchanged, or sign in again."""

    code, title = "access-token-signature-invalid", "The token's signature is wrong"


class AccessTokenIssuerRefused(NotAuthenticated):
    """The token's `iss` is not an accepted issuer. Sign in at this service."""

    code, title = "access-token-issuer-refused", "The token's issuer is not accepted"


class AccessTokenAudienceRefused(NotAuthenticated):
    """The token's `aud` is not this service. Sign in here, and send each service its own token."""

    code, title = "access-token-audience-refused", "The token is for another service"


class AccessTokenKindRefused(NotAuthenticated):
    """The token is not an access token. A refresh token goes into the body of `/api/auth/refresh`."""

    code, title = "access-token-kind-refused", "This is not an access token"


class StaffStarted(DomainError):
    """The command line creates the first three staff accounts; all others are requested in the admin and approved."""

    code, title, status = "staff-started", "The first staff accounts already exist", 409
