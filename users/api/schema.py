"""Sign-in in the OpenAPI document: the security scheme, descriptions, error responses and examples."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample

from gateway.chain.errors import NodeUnavailable, UnusableSignature
from gateway.chain.mistakes import SignedForOtherChain
from gateway.common.errors import NotAuthenticated, NotFound, WrongChecksum
from gateway.common.problems import BODY_ERRORS, problem_responses
from users import errors
from users.errors import SignPermissionMissing, UntrustedCode


class AccessTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "users.api.authentication.AccessTokenAuthentication"
    name = "accessToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": (
                "The `access` token of `/api/auth/verify` or `/api/auth/refresh`, as `Authorization: Bearer <JWT>` "
                "or as the bare `<JWT>`."
            ),
        }


NONCE = problem_responses(*BODY_ERRORS, WrongChecksum, errors.ProfileNotDeployed, UntrustedCode)
VERIFY = problem_responses(
    *BODY_ERRORS,
    WrongChecksum,
    UnusableSignature,
    SignedForOtherChain,
    errors.ChallengeUnknown,
    errors.ChallengeExpired,
    errors.ChallengeUsed,
    errors.ChallengeForeign,
    errors.SignatureNotByController,
    SignPermissionMissing,
    UntrustedCode,
    errors.ProfileNotDeployed,
    errors.AccountInactive,
    errors.AccountDeleted,
    NodeUnavailable,
)
REFRESH = problem_responses(
    *BODY_ERRORS,
    errors.RefreshTokenUnknown,
    errors.RefreshTokenReused,
    errors.ControllerRevoked,
    errors.SessionEnded,
    errors.AccountInactive,
    NodeUnavailable,
)
LOGOUT = problem_responses(*BODY_ERRORS, NotAuthenticated)
ME = problem_responses(NotAuthenticated)
SESSION = problem_responses(NotAuthenticated, NotFound)
KEYS = problem_responses()


NONCE_DESCRIPTION = """
Returns an EIP-4361 message for the profile. A controller of the profile signs it byte for byte with
`personal_sign` or `eth_sign` before `expiresAt`; then send `nonce` and signature to `/api/auth/verify`.

An address without a profile's code is refused here if a node responds at once; otherwise `/api/auth/verify` refuses it.
""".strip()
VERIFY_DESCRIPTION = """
The signing controller must hold SIGN on the profile. A nonce is valid for one attempt, successful or not; only a
malformed signature leaves it unused. So after a 503 from this path, request a new nonce and sign its message; the same
body would get 401 `nonce-used`.
""".strip()
REFRESH_DESCRIPTION = """
A refresh token is valid for one exchange. Repeats within 10 seconds return the same next refresh token. After a lost
response, one more repeat does, within ten minutes and while that next token is unused. Any other repeat ends the
session, because two parties then hold the token. The controller must still hold SIGN. A refresh does not extend the
session.
""".strip()
LOGOUT_DESCRIPTION = """
Ends the session of the access token at once, with all its tokens. `refresh` may name another session of the same user,
which then ends too. A token of an external issuer stays valid until it expires, so sign out at its issuer as well.
""".strip()
ME_DESCRIPTION = "The session and user of the access token."
SESSIONS_DESCRIPTION = """
The active sessions of the profile; each began with a signature of one controller. Tokens of an external issuer belong
to no session.
""".strip()
LOGOUT_EVERYWHERE_DESCRIPTION = """
Ends every session of the profile at once, including this one, with all access and refresh tokens. A token of an
external issuer stays valid until it expires.
""".strip()
END_SESSION_DESCRIPTION = """
Ends one session of the profile at once, with all its tokens. `sessionsEnded` is 0 if the profile has no active session
with this id.
""".strip()
KEYS_DESCRIPTION = """
The public keys of our access tokens (RFC 7517). While a key is being replaced there are two; choose by `kid`.
""".strip()
_PROFILE = "0x12860139DBD9E9678A08B4c8aAE062302298b05c"
_NONCE = "QMsCqZEKsmuxnAheTyoi98"
_MESSAGE = (
    f"relay.example.com wants you to sign in with your Ethereum account:\n"
    f"{_PROFILE}\n"
    f"\n"
    f"Sign in to the credit relay gateway. This costs nothing and sends no transaction.\n"
    f"\n"
    f"URI: https://relay.example.com\n"
    f"Version: 1\n"
    f"Chain ID: 42\n"
    f"Nonce: {_NONCE}\n"
    f"Issued At: 2026-11-21T10:08:57.759Z\n"
    f"Expiration Time: 2026-11-21T10:13:57.759Z"
)
_SIGNATURE = (
    "0x37d4066a2436ae3e7980d2c168f8b3bb288171eb0a45e321ca075044e4fc52823a1331df98e36d0cdf3df39142f177"
    "a934d7601df8a6e727534bfbfb702e1df81b"
)
_ACCESS = (
    "eyJhbGciOiJFUzI1NiIsImtpZCI6IkZPRm5TUXFWVDA0TGstdEE3aWRnbjBNVTVVWXdtVl94OXNTd1ZCVWJVanciLCJ0eXAi"
    "OiJhdCtqd3QifQ.eyJ0b2tlbl90eXBlIjoiYWNjZXNzIiwiZXhwIjoxNzk1MjU2MzM3LCJpYXQiOjE3OTUyNTU3MzcsImp0a"
    "SI6ImVkZDI1MWEyYzFiODQ5OWJiMjUyNzc1MTI4ZGM1N2NiIiwic3ViIjoiMSIsImFkZHJlc3MiOiIweDEyODYwMTM5REJEO"
    "UU5Njc4QTA4QjRjOGFBRTA2MjMwMjI5OGIwNWMiLCJzaWQiOiIzODQ1OGFiOS0xNmJjLTQ3NjYtYWJkOC0yZmUwZDUyOWFjO"
    "DciLCJjdGwiOiIweDZlM0QzOTlhMzQ1NDQ0RGNCMTc3ZTRlYjI3QUYzMGNkMWRjMjY3Y0UiLCJpc3MiOiJodHRwczovL3Jlb"
    "GF5LmV4YW1wbGUuY29tIiwiYXVkIjoiaHR0cHM6Ly9yZWxheS5leGFtcGxlLmNvbSJ9.c-m3TF79xdE9K2g98LMHpsY2Ze1H"
    "tLRyc8meMOXenHW5YW0A_053yE3dK3vx0Rkp218hs0gR4XV7Wl_zzf6veQ"
)
_REFRESH = "rt_MCr9QXJf7dTUSoyiT7Qq3zmADeghYvcA93ftOD13sms"
_NEXT_REFRESH = "rt_-G0Nylk7H1PqlWeiHYcaCQcd2DaUZKnRC8Oy1Bq0SEY"
_SESSION = "38458ab9-16bc-4766-abd8-2fe0d529ac87"
_CONTROLLER = "0x6e3D399a345444DcB177e4eb27AF30cd1dc267cE"


def _pair(refresh: str) -> dict[str, str | int]:
    return {"access": _ACCESS, "refresh": refresh, "expiresIn": 600, "address": _PROFILE}


def _request(name: str, **body: str) -> OpenApiExample:
    return OpenApiExample(name, value=body, request_only=True)


def _response(name: str, value: object) -> OpenApiExample:
    return OpenApiExample(name, value=value, response_only=True, status_codes=["200"])


NONCE_EXAMPLES = [
    _request("Ask for a message", address=_PROFILE),
    _response(
        "Sign this", {"nonce": _NONCE, "message": _MESSAGE, "expiresAt": "2026-11-21T10:13:57.759867Z"}
    ),
]
VERIFY_EXAMPLES = [
    _request("Send the signature", nonce=_NONCE, signature=_SIGNATURE),
    _request("Name the profile too", nonce=_NONCE, signature=_SIGNATURE, address=_PROFILE),
    _response("Signed in", _pair(_REFRESH)),
]
REFRESH_EXAMPLES = [_request("Exchange", refresh=_REFRESH), _response("The next pair", _pair(_NEXT_REFRESH))]
LOGOUT_EXAMPLES = [
    _request("End this session"),
    _request("End another one too", refresh=_NEXT_REFRESH),
    _response("Signed out", {"signedOut": True}),
]
ME_EXAMPLES = [
    _response(
        "A session",
        {
            "address": _PROFILE,
            "controller": _CONTROLLER,
            "sessionId": _SESSION,
            "sessionExpiresAt": "2026-12-21T10:08:57.767256Z",
            "accessExpiresAt": "2026-11-21T10:18:57Z",
            "issuer": "https://relay.example.com",
        },
    ),
    _response(
        "A token of the external issuer",
        {
            "address": _PROFILE,
            "controller": None,
            "sessionId": None,
            "sessionExpiresAt": None,
            "accessExpiresAt": "2026-11-21T10:18:57Z",
            "issuer": "https://id.example.com/",
        },
    ),
]
SESSIONS_EXAMPLES = [
    _response(
        "Signed in on one device",
        {
            "sessions": [
                {
                    "sessionId": _SESSION,
                    "controller": _CONTROLLER,
                    "signedInAt": "2026-11-21T10:08:57.767256Z",
                    "refreshedAt": "2026-11-21T10:38:12.104771Z",
                    "expiresAt": "2026-12-21T10:08:57.767256Z",
                    "isCurrent": True,
                }
            ]
        },
    )
]
END_SESSION_EXAMPLES = [_response("Session ended", {"sessionsEnded": 1})]
LOGOUT_EVERYWHERE_EXAMPLES = [_response("Signed out everywhere", {"sessionsEnded": 2})]
KEYS_EXAMPLES = [
    _response(
        "One key",
        {
            "keys": [
                {
                    "kty": "EC",
                    "crv": "P-256",
                    "x": "w8F20dFaQf5jVXONXUlMweEjjug0aGVycUk6trJxP-Y",
                    "y": "ETIWJd1RZX4OPb7BduJOM0-lBd5mCNXnkVySxsYGVb0",
                    "kid": "FOFnSQqVT04Lk-tA7idgn0MU5UYwmV_x9sSwVBUbUjw",
                    "use": "sig",
                    "alg": "ES256",
                }
            ]
        },
    )
]
