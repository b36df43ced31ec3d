"""
JSON-RPC: calls, the functions that parse their answers, and the faults of a node's answer.

A call carries the function that parses its answer. `batches` applies it to the node's answer and turns every exception
into a `NodeFault`, so no caller sees an unparsed answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

# More than any answer whose size no contract decides.
ANSWER_BYTES = 65_536
# EIP-1474 has "method not supported" besides JSON-RPC's "method not found"; EDR answers with it.
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
    In place of an answer that a contract made larger than its call allows.

    The contract, and the caller who chose it, are at fault, not the node.
    """

    code: int = _OVERSIZED
    message: str = "the answer is too large"


def _raw(answer: Any) -> Any:
    return answer


def _no_error(_: RpcError) -> bool:
    return False


class Call(NamedTuple):
    """
    One call of a batch.

    `read` parses the result, or an error that `accepts` treats as an answer. Any exception that it raises is a fault of
    the node. `max_bytes` is the largest answer in bytes of JSON. If a contract decides the size, `read` gets an
    `OversizedError` for a larger answer; otherwise a larger answer is the node's fault.
    """

    method: str
    params: list[Any]
    read: Callable[[Any], Any] = _raw
    accepts: Callable[[RpcError], bool] = _no_error
    max_bytes: int = ANSWER_BYTES
    is_sized_by_contract: bool = False


class NodeFault(Exception):
    """One node failed. The text names the kind of failure, and no part of the URL."""

    # Whether the node is wrong, and not merely away, busy or behind: then it leaves the rotation.
    is_wrong: ClassVar[bool] = False

    def __init__(self, reason: str, *, method: str = "") -> None:
        super().__init__(f"{method}: {reason}" if method else reason)
        self.reason, self.method = reason, method


class HttpFault(NodeFault):
    """The node could not be reached in time, or its response is not HTTP with status 200."""


class ErrorAnswer(NodeFault):
    """The node answers a call by an error which is not an answer, such as a rate limit."""


class MalformedAnswer(NodeFault):
    """The answer to a call, or the whole response, is not what JSON-RPC and the method promise."""

    is_wrong = True


class BatchRefused(NodeFault):
    """The node did not answer all calls of a batch; a smaller batch may pass, of `limit` calls if it names one."""

    is_wrong = True

    def __init__(self, reason: str, *, limit: int | None = None, method: str = "") -> None:
        super().__init__(reason, method=method)
        self.limit = limit


class TooLarge(NodeFault):
    """The response is too large: because of the answer at `place`, or with None because of all together."""

    is_wrong = True

    def __init__(self, place: int | None = None) -> None:
        super().__init__("response too large")
        self.place = place
