"""
JSON-RPC: calls, the functions that parse their responses, and the faults of a node's response.

A call carries the function that parses its response. `batches` applies it to the node's response and turns every
exception into a `NodeFault`, so no caller sees an unparsed response.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

# Larger than any response whose size does not depend on a contract.
RESPONSE_BYTES = 65_536
# EIP-1474 defines "method not supported" in addition to JSON-RPC's "method not found"; EDR uses it.
METHOD_NOT_FOUND, METHOD_NOT_SUPPORTED, INVALID_PARAMS = -32601, -32004, -32602
_OVERSIZED = 0


@dataclass(frozen=True, slots=True)
class RpcError:
    """A node's error response to one call of a batch."""

    code: int
    message: str
    data: Any = None


@dataclass(frozen=True, slots=True)
class OversizedError(RpcError):
    """
    Stands in for a response that a contract made larger than its call allows.

    The fault is that of the contract and of the caller who chose it, not of the node.
    """

    code: int = _OVERSIZED
    message: str = "the response is too large"


def _raw(response: Any) -> Any:
    return response


def _no_error(_: RpcError) -> bool:
    return False


class Call(NamedTuple):
    """
    One call of a batch.

    `read` parses the result, or an error that `accepts` treats as a response. Any exception that it raises is a fault
    of the node. `max_bytes` is the largest response in bytes of JSON. If a contract decides the size, `read` gets an
    `OversizedError` for a larger response; otherwise a larger response is the node's fault.
    """

    method: str
    params: list[Any]
    read: Callable[[Any], Any] = _raw
    accepts: Callable[[RpcError], bool] = _no_error
    max_bytes: int = RESPONSE_BYTES
    is_sized_by_contract: bool = False


class NodeFault(Exception):
    """One node failed. The message names the kind of failure, but no part of the URL."""

    # Whether an invalid response takes the node out of the rotation, unlike being unreachable, busy or behind.
    is_wrong: ClassVar[bool] = False

    def __init__(self, reason: str, *, method: str = "") -> None:
        super().__init__(f"{method}: {reason}" if method else reason)
        self.reason, self.method = reason, method


class HttpFault(NodeFault):
    """The node could not be reached in time, or did not respond with HTTP status 200."""


class ErrorResponse(NodeFault):
    """The node returned an error that is not a valid response to the call, such as a rate limit."""


class SenderShort(ErrorResponse):
    """The node refuses to simulate a call, because of its sender's balance. It may not refuse one with coins."""


class MalformedResponse(NodeFault):
    """The response to a call, or the whole body, violates JSON-RPC or the method's specification."""

    is_wrong = True


class BatchRefused(NodeFault):
    """
    The node did not respond to all calls of a batch. A smaller one may succeed; `limit` is the size in its message.
    """

    is_wrong = True

    def __init__(self, reason: str, *, limit: int | None = None, method: str = "") -> None:
        super().__init__(reason, method=method)
        self.limit = limit


class TooLarge(NodeFault):
    """The body is too large: because of the response at `place`, or, if None, because of all responses together."""

    is_wrong = True

    def __init__(self, place: int | None = None) -> None:
        super().__init__("response too large")
        self.place = place
