"""Which refusals each path of sign-in may answer, for the API's description."""

from gateway.chain.errors import NodeUnavailable, UnusableSignature
from gateway.common.errors import InvalidRequest, NotAuthenticated
from gateway.common.schema import BODY, problem_responses
from relay.errors import SignPermissionMissing, UntrustedCode
from users import errors

NONCE = problem_responses(*BODY)
VERIFY = problem_responses(
    *BODY,
    UnusableSignature,
    errors.ChallengeUnknown,
    errors.ChallengeExpired,
    errors.ChallengeUsed,
    errors.ChallengeForeign,
    errors.SignatureNotByController,
    SignPermissionMissing,
    UntrustedCode,
    errors.ProfileNotDeployed,
    errors.AccountInactive,
    NodeUnavailable,
)
REFRESH = problem_responses(
    *BODY,
    errors.RefreshTokenUnknown,
    errors.RefreshTokenReused,
    errors.ControllerRevoked,
    errors.SessionEnded,
    errors.AccountInactive,
    NodeUnavailable,
)
LOGOUT = problem_responses(*BODY, NotAuthenticated)
ME = problem_responses(NotAuthenticated)
KEYS = problem_responses()
DASHBOARD = problem_responses(NotAuthenticated)
HISTORY = problem_responses(InvalidRequest, NotAuthenticated)
