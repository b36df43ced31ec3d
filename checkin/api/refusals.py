"""Which refusals each check-in path may answer, for the API's description."""

from checkin import errors
from gateway.common import errors as common
from gateway.common.errors import DomainError
from gateway.common.schema import BODY, problem_responses

_ALWAYS: tuple[type[DomainError], ...] = (
    common.NotAuthenticated,
    common.TooManyRequests,
    common.ServiceUnavailable,
)

DROPS = problem_responses(*_ALWAYS)
_EXECUTE = (
    *_ALWAYS,
    common.InvalidRequest,
    errors.CheckInUnavailable,
    errors.CheckInsPaused,
    errors.CheckInsNotReady,
)
EXECUTE = problem_responses(*_EXECUTE)
EXECUTE_BY_POST = problem_responses(*_EXECUTE, *BODY)
FAIRNESS = problem_responses(*_ALWAYS)
