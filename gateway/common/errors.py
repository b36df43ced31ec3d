"""
The errors of the API.

Each error is an exception class with a stable `code`, an HTTP `status`, a flag for whether a retry may succeed
(`retryable`), and further members. `gateway.common.problems` renders it.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

# The key in a request's environ of the error with which the server refuses the request before any view.
REFUSAL = "gateway.refusal"


class DomainError(Exception):
    """
    An error that callers can handle.

    Subclasses set `code` (kebab-case, unique in the service), `title` (one short phrase) and `status`. `detail`
    describes this occurrence; keyword members are added to the problem document unchanged.
    """

    code: ClassVar[str] = ""
    title: ClassVar[str] = ""
    status: ClassVar[int] = 400
    retryable: ClassVar[bool] = False
    # Whether a dependency is unavailable. A run over many items stops at such an error.
    is_outage: ClassVar[bool] = False

    def __init__(self, detail: str, *, retry_after: int | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after
        self.members = members


class InvalidRequest(DomainError):
    """The body or the query does not match the documented schema; `errors` lists each fault with a JSON pointer."""

    code, title, status = "invalid-request", "The request is not valid", 400


class WrongChecksum(DomainError):
    """
    An address in mixed case has a wrong checksum (EIP-55), so at least one of its digits is wrong.

    Copy the address again from its source. An address in lower case has no checksum and is accepted.
    """

    code, title, status = "address-checksum", "The address is mistyped", 400


class InternalError(DomainError):
    """An internal error of the service. With the `requestId`, support can find it in the logs."""

    code, title, status, retryable = "internal-error", "Internal error", 500, True


class NotAuthenticated(DomainError):
    """The request carries no access token. Sign in at `/api/auth/verify` and send its `access` as `Authorization`."""

    code, title, status = "not-authenticated", "Sign in first", 401


class HttpsRequired(DomainError):
    """The request was sent by plain http. Use https, and rotate the secrets that it contained."""

    code, title, status = "https-required", "HTTPS required", 403


class NotFound(DomainError):
    """Nothing exists at this address, or the caller has no access to it."""

    code, title, status = "not-found", "Not found", 404


class MethodNotAllowed(DomainError):
    """The path exists but does not allow this method. The header `Allow` lists the methods that it allows."""

    code, title, status = "method-not-allowed", "Method not allowed", 405


class LengthRequired(DomainError):
    """The body was sent with `Transfer-Encoding`. Send it with `Content-Length` instead; none of it was read."""

    code, title, status = "length-required", "Content-Length required", 411


class RequestTimeout(DomainError):
    """The body did not arrive in time; the request had no effect."""

    code, title, status = "request-timeout", "Request timeout", 408


class RequestTooLarge(DomainError):
    """The body is larger than `maximumBytes`."""

    code, title, status = "request-too-large", "The body is too large", 413


class UnsupportedMediaType(DomainError):
    """The request's `Content-Type` is not `application/json`. Send this header, and JSON as the body."""

    code, title, status = "unsupported-media-type", "Send JSON", 415


class TooManyRequests(DomainError):
    """The caller has exceeded the rate limit of this kind of request; retry after `Retry-After` seconds."""

    code, title, status, retryable = "too-many-requests", "Too many requests", 429, True


class PermissionDenied(DomainError):
    """The caller is authenticated but does not have the permission."""

    code, title, status = "permission-denied", "Not allowed", 403


class ServiceUnavailable(DomainError):
    """A dependency of this request is unavailable; retry after `Retry-After` seconds."""

    code, title, status, retryable = "service-unavailable", "Temporarily unavailable", 503, True


class WorkersUnreachable(DomainError):
    """The message broker is unavailable, so no worker received the task."""

    code, title, status, retryable = "workers-unreachable", "Workers unavailable", 503, True


class ReasonRequired(DomainError):
    """Staff must give a reason for this action."""

    code, title, status = "reason-required", "Give a reason", 400

    def __init__(self) -> None:
        super().__init__("Give a reason; it is stored in the log.")


_LEAST_LETTERS = 8


def complaint_about(reason: str) -> str:
    """Return why the text is not a valid reason, for example if it has only dots; empty if it is valid."""
    if sum(character.isalnum() for character in reason) >= _LEAST_LETTERS:
        return ""
    return (
        f"Give a reason of at least {_LEAST_LETTERS} letters: those who read the log later know nothing else."
    )


def stated(reason: str) -> str:
    """
    Return the reason without surrounding blanks.

    Raises:
        ReasonRequired: the reason is blank.
    """
    text = reason.strip()
    if not text:
        raise ReasonRequired
    return text


def all_errors() -> Iterator[type[DomainError]]:
    """Yield every imported error class once, in any order."""
    pending: list[type[DomainError]] = [DomainError]
    while pending:
        for error in pending.pop().__subclasses__():
            pending.append(error)
            if "code" in error.__dict__ and error.code:
                yield error
