"""
The errors that the service answers with.

Each is an exception class named after what is refused. It has a stable `code`, an HTTP `status`,
whether a repeat may succeed (`retryable`) and facts as members; `gateway.common.problems` renders it.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

# In the environ of a request: the error with which the server refuses it before any view sees it.
REFUSAL = "gateway.refusal"


class DomainError(Exception):
    """
    An error that callers can act on.

    Subclasses set `code` (kebab-case, unique in the service), `title` (one short
    sentence) and `status`. `detail` describes this occurrence; keyword members are
    added to the problem document as they are.
    """

    code: ClassVar[str] = ""
    title: ClassVar[str] = ""
    status: ClassVar[int] = 400
    retryable: ClassVar[bool] = False
    # What the service depends on is away, so that a run of many items ends at the first.
    is_outage: ClassVar[bool] = False

    def __init__(self, detail: str, *, retry_after: int | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after
        self.members = members


class InvalidRequest(DomainError):
    """The body or the query does not have the documented shape; `errors` lists each fault with a JSON pointer."""

    code, title, status = "invalid-request", "The request is not valid", 400


class WrongChecksum(DomainError):
    """
    An address has capitals and small letters that are not its checksum (EIP-55), so a digit of it is wrong.

    Copy it again from where it comes from. An address in small letters alone has no checksum and is taken as it is.
    """

    code, title, status = "address-checksum", "The address is mistyped", 400


class InternalError(DomainError):
    """Something broke on our side; the `requestId` lets support find the trace."""

    code, title, status, retryable = "internal-error", "Something went wrong on our side", 500, True


class NotAuthenticated(DomainError):
    """The request carries no access token."""

    code, title, status = "not-authenticated", "Sign in first", 401


class HttpsRequired(DomainError):
    """The request came by plain http. Ask by https, and make secrets anew that it carried: others could read them."""

    code, title, status = "https-required", "Only https is served", 403


class NotFound(DomainError):
    """There is nothing at this address that the caller may see."""

    code, title, status = "not-found", "Not found", 404


class MethodNotAllowed(DomainError):
    """The path exists and does not know this method."""

    code, title, status = "method-not-allowed", "Method not allowed", 405


class LengthRequired(DomainError):
    """The body came in chunks (`Transfer-Encoding`). Send it whole, with `Content-Length`; nothing of it was read."""

    code, title, status = "length-required", "Tell the body's length", 411


class RequestTimeout(DomainError):
    """The body did not arrive in time; nothing of it was used."""

    code, title, status = "request-timeout", "The body came too late", 408


class RequestTooLarge(DomainError):
    """The body is larger than the service reads, which is `maximumBytes`."""

    code, title, status = "request-too-large", "The body is too large", 413


class UnsupportedMediaType(DomainError):
    """The body is not declared as `application/json`."""

    code, title, status = "unsupported-media-type", "Send JSON", 415


class TooManyRequests(DomainError):
    """The rate limit of this kind of request is used up; wait for `Retry-After` seconds."""

    code, title, status, retryable = "too-many-requests", "Too many requests", 429, True


class PermissionDenied(DomainError):
    """The caller is known and may not do this."""

    code, title, status = "permission-denied", "Not allowed", 403


class ServiceUnavailable(DomainError):
    """A part that this request needs cannot be reached; repeat after `Retry-After` seconds."""

    code, title, status, retryable = "service-unavailable", "Temporarily unavailable", 503, True


class WorkersUnreachable(DomainError):
    """The broker that hands work to the workers cannot be reached, so nobody was asked to do this."""

    code, title, status, retryable = "workers-unreachable", "No worker can be reached", 503, True


class ReasonRequired(DomainError):
    """Staff say why they do what nobody else can, such as correcting a balance or pausing the relay."""

    code, title, status = "reason-required", "Give a reason", 400

    def __init__(self) -> None:
        super().__init__("Say why; it stays on record.")


def stated(reason: str) -> str:
    """
    Return the reason without surrounding blanks.

    Raises:
        ReasonRequired: nothing is left.
    """
    text = reason.strip()
    if not text:
        raise ReasonRequired
    return text


def all_errors() -> Iterator[type[DomainError]]:
    """Yield every error class that has been imported, each once, in no promised order."""
    pending: list[type[DomainError]] = [DomainError]
    while pending:
        for error in pending.pop().__subclasses__():
            pending.append(error)
            if "code" in error.__dict__ and error.code:
                yield error
