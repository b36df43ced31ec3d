"""
A batch of JSON-RPC calls and its response, which is read while its bytes arrive.

Everything in a body is untrusted. Each response and the whole body have a maximum size, Python's recursion limit
bounds the nesting, and each response is matched to its call by id.
"""

import codecs
import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from gateway.chain.rpc import (
    BatchRefused,
    Call,
    ErrorResponse,
    MalformedResponse,
    NodeFault,
    OversizedError,
    RpcError,
    SenderShort,
    TooLarge,
)
from gateway.chain.sender_funds import is_short_of_funds

# The maximum size of a body; a single response may be larger if its call allows it.
_MOST_BYTES = 8 * 1024 * 1024
_SMALL_BYTES = 65_536
# Nodes' error messages are searched and logged only up to this length.
_MESSAGE_CHARACTERS = 1_000
_FIRST_ID = 1
_BETWEEN = re.compile(r"[\s,]*")
_ID_FIRST = re.compile(r'\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,6})\b')
# Providers send it with status 200 and one error in place of all responses. A smaller batch would count as well.
_RATE_LIMIT = re.compile(
    r"rate.?limit|request (rate|count|limit)|\bper (second|minute|day)|daily|monthly|quota|throughput|"
    r"too many requests(?! in)",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"limit\D{0,40}?(\d{1,6})|(?:maximum|max|most|up to)\D{0,40}?(\d{1,6})", re.IGNORECASE)


def request_body(calls: Sequence[Call]) -> bytes:
    """Return the JSON of a batch. Ids count from 1, because some providers take the id 0 for a missing one."""
    envelopes = [
        {"jsonrpc": "2.0", "id": number, "method": call.method, "params": call.params}
        for number, call in enumerate(calls, start=_FIRST_ID)
    ]
    return json.dumps(envelopes, separators=(",", ":")).encode()


class BatchResponse:
    """The response to a batch: takes the bytes of its body, then returns the responses."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._most_bytes = max(_MOST_BYTES, max(call.max_bytes for call in calls) + _SMALL_BYTES)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._pieces: list[bytes] = []
        # All bytes received, and those that are not parsed yet.
        self._size = self._waiting = 0
        # The text after the last complete response.
        self._rest = ""
        self._has_begun = self._has_ended = False
        self._values: dict[int, Any] = {}
        self._refusal = ""

    def take(self, piece: bytes) -> None:
        """
        Take the next bytes of the body.

        Raises:
            TooLarge: a response, or the whole body, is too large.
            MalformedResponse, BatchRefused: see `values`.
        """
        self._pieces.append(piece)
        self._size += len(piece)
        self._waiting += len(piece)
        # Wait for twice as much text each time, so that a response in many pieces is not parsed again for each piece.
        if self._waiting > max(_SMALL_BYTES, len(self._rest)):
            self._parse(is_complete=False)
        if self._size > self._most_bytes:
            raise TooLarge

    def values(self) -> list[Any]:
        """
        Return the parsed response of each call in order, or the `NodeFault` in its place.

        If a contract may have caused an oversized response, its value is `TooLarge`, even if the node is at fault.

        Raises:
            MalformedResponse: the body is not the response to this batch.
            BatchRefused: responses are missing.
            ErrorResponse: a rate limit refused the whole batch.
        """
        self._parse(is_complete=True)
        if not self._has_ended:
            raise MalformedResponse("response is cut off")
        if len(self._values) < len(self._calls):
            self._refuse(self._refusal or "responses are missing")
        return [self._values[place] for place in range(len(self._calls))]

    def _parse(self, *, is_complete: bool) -> None:
        try:
            text = self._rest + self._decoder.decode(b"".join(self._pieces), is_complete)
            self._pieces, self._waiting = [], 0
            at = self._begin(text, is_complete=is_complete)
            self._rest = text[self._responses_from(text, at) :]
        except UnicodeDecodeError as error:
            raise MalformedResponse("not UTF-8") from error

    def _begin(self, text: str, *, is_complete: bool) -> int:
        """Return where the first response begins."""
        at = _skip(text, 0)
        if self._has_begun or at == len(text):
            return at
        if text[at] != "[":
            self._not_a_batch(text, is_complete=is_complete)
        self._has_begun = True
        return at + 1

    def _responses_from(self, text: str, at: int) -> int:
        """Take the complete responses from `at` on; return where the first incomplete one begins."""
        while self._has_begun:
            at = _skip(text, at)
            if at == len(text):
                break
            if text[at] == "]" or self._has_ended:
                if self._has_ended or _skip(text, at + 1) < len(text):
                    raise MalformedResponse("not JSON")
                self._has_ended = True
                return len(text)
            try:
                response, end = _DECODER.raw_decode(text, at)
            except json.JSONDecodeError:
                self._check_incomplete(text, at)
                break
            except (ValueError, RecursionError) as error:
                raise _unreadable(error) from error
            self._add(response, end - at)
            at = end
        return at

    def _check_incomplete(self, text: str, at: int) -> None:
        """Raise if the response that is still arriving is already too large."""
        named = _ID_FIRST.match(text, at)
        # Some nodes write the id last; then assume the order of the calls, which nearly all nodes keep.
        place = int(named.group(1)) - _FIRST_ID if named else len(self._values)
        if not 0 <= place < len(self._calls) or place in self._values:
            raise MalformedResponse("the id of a response matches no call")
        call = self._calls[place]
        if len(text) - at > call.max_bytes:
            raise _excess(call, place)

    def _not_a_batch(self, text: str, *, is_complete: bool) -> None:
        if not is_complete and len(text) <= _SMALL_BYTES:
            return
        try:
            response = _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            raise _unreadable(error) from error
        self._refuse(_message_of(response) or "response is not a batch")

    def _add(self, response: Any, size: int) -> None:
        if not isinstance(response, dict):
            raise MalformedResponse("a response is not an object")
        number = response.get("id")
        # An error without an id may have the reason if responses are missing.
        self._refusal = _message_of(response) or self._refusal
        if number is None and response.get("error") is not None:
            return
        place = number - _FIRST_ID if type(number) is int else -1
        if not 0 <= place < len(self._calls) or place in self._values:
            raise MalformedResponse("the id of a response matches no call")
        call = self._calls[place]
        self._values[place] = _excess(call, place) if size > call.max_bytes else _value(call, response)

    def _refuse(self, reason: str) -> NoReturn:
        method = self._calls[0].method
        if _RATE_LIMIT.search(reason):
            raise ErrorResponse(reason[:100], method=method)
        named = _LIMIT.search(reason)
        limit = next((int(text) for text in named.groups() if text), None) if named else None
        raise BatchRefused(reason[:100], limit=limit, method=method)


def _excess(call: Call, place: int) -> NodeFault:
    return TooLarge(place) if call.is_sized_by_contract else oversized_by_node(call)


def oversized_by_node(call: Call) -> MalformedResponse:
    """Return the fault of a node whose response is larger than this call allows."""
    return MalformedResponse(f"the response is larger than {call.max_bytes} bytes", method=call.method)


def oversized_by_contract(call: Call) -> Any:
    """Return the call's value for a response that its contract made too large, or the `NodeFault` in its place."""
    return _read(call, OversizedError())


def _value(call: Call, response: dict[str, Any]) -> Any:
    fields = response.get("error")
    if fields is None:
        if "result" not in response:
            return MalformedResponse("neither a result nor an error", method=call.method)
        return _read(call, response["result"])
    if not isinstance(fields, dict) or type(fields.get("code")) is not int:
        return MalformedResponse("error without a code", method=call.method)
    error = RpcError(code=fields["code"], message=_message_of(response), data=fields.get("data"))
    if is_short_of_funds(call, error):
        return SenderShort(f"JSON-RPC error {error.code}, the sender has too few coins", method=call.method)
    if not call.accepts(error):
        return ErrorResponse(f"JSON-RPC error {error.code}", method=call.method)
    return _read(call, error)


def _read(call: Call, response: Any) -> Any:
    try:
        return call.read(response)
    except MalformedResponse as fault:
        return MalformedResponse(fault.reason, method=call.method)
    except Exception as error:  # noqa: BLE001 - whatever a response makes its reader raise is the node's fault
        return MalformedResponse(f"unreadable ({type(error).__name__})", method=call.method)


def _unreadable(error: Exception) -> MalformedResponse:
    return MalformedResponse("nested too deeply" if isinstance(error, RecursionError) else "not JSON")


def _message_of(response: Any) -> str:
    """Return the message of an error response; empty if there is none."""
    fields = response.get("error") if isinstance(response, dict) else None
    message = fields.get("message") if isinstance(fields, dict) else fields
    return message[:_MESSAGE_CHARACTERS] if isinstance(message, str) else ""


def _skip(text: str, at: int) -> int:
    """Return the place of the next character other than space and comma."""
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


# NaN and Infinity are not valid JSON.
_DECODER = json.JSONDecoder(parse_constant=_no_constant)
