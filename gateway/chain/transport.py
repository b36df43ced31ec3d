"""
JSON-RPC over HTTP: batches, keep-alive connections, and the next node if one fails.

Every request is safe to repeat (reads, and transactions that are the same bytes),
so after any fault of a node the next one is asked. URLs may hold access keys, so no log
and no error shows them.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, ProtocolError
from urllib3.util import parse_url

from gateway.chain.errors import NodeUnavailable

logger = logging.getLogger(__name__)

_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}
_CONNECT_SECONDS = 2.0
_CONNECTIONS_PER_NODE = 64
_RETRY_AFTER_SECONDS = 2
# A node that failed is asked last for this long, so that not every request waits for its timeout again.
_REST_SECONDS = 10.0
_BATCH_LIMIT = 200

Call = tuple[str, list[Any]]


@dataclass(frozen=True, slots=True)
class RpcError:
    """The node's refusal of one call of a batch."""

    code: int
    message: str
    data: Any = None


class _NodeFault(Exception):
    """One node failed; the text names the kind of failure and no part of the URL."""


def unreadable() -> NodeUnavailable:
    """Return the refusal for a malformed answer."""
    return NodeUnavailable("The chain node gave no usable answer.", retry_after=_RETRY_AFTER_SECONDS)


class Transport:
    """Sends batches to the first healthy node of a list. Safe to share between threads."""

    def __init__(self, urls: Sequence[str], *, timeout_seconds: float) -> None:
        self._resting_until = dict.fromkeys(urls, 0.0)
        timeout = urllib3.Timeout(connect=min(_CONNECT_SECONDS, timeout_seconds), read=timeout_seconds)
        # One pool per node: a general pool would look up the node's for every request.
        self._nodes = {
            url: (
                urllib3.connection_from_url(
                    url, maxsize=_CONNECTIONS_PER_NODE, timeout=timeout, retries=False, headers=_HEADERS
                ),
                parse_url(url).request_uri,
            )
            for url in urls
        }

    def batch(self, calls: Sequence[Call], *, accepts: Callable[[RpcError], bool]) -> list[Any]:
        """
        Return each call's result, or an `RpcError` that `accepts` likes, in the order of `calls`.

        Any other error is a fault of the node, and the next node is asked. More than
        200 calls go in several requests, one after the other.

        Raises:
            NodeUnavailable: no node in the list answered.
        """
        replies: list[Any] = []
        for start in range(0, len(calls), _BATCH_LIMIT):
            replies += self._request(calls[start : start + _BATCH_LIMIT], accepts)
        return replies

    def _request(self, calls: Sequence[Call], accepts: Callable[[RpcError], bool]) -> list[Any]:
        envelopes = [
            {"jsonrpc": "2.0", "id": place, "method": method, "params": params}
            for place, (method, params) in enumerate(calls)
        ]
        body = json.dumps(envelopes, separators=(",", ":")).encode()
        for url in self._by_health():
            try:
                return _replies(self._post(url, body), len(calls), accepts)
            except _NodeFault as fault:
                self._resting_until[url] = time.monotonic() + _REST_SECONDS
                logger.warning("chain node %s failed: %s", urlsplit(url).hostname, fault)
        raise NodeUnavailable("No chain node answers. Repeat the request.", retry_after=_RETRY_AFTER_SECONDS)

    def _by_health(self) -> list[str]:
        now = time.monotonic()
        return sorted(self._resting_until, key=lambda url: self._resting_until[url] > now)

    def _post(self, url: str, body: bytes) -> bytes:
        pool, path = self._nodes[url]
        try:
            try:
                response = pool.urlopen("POST", path, body=body, redirect=False)
            except ProtocolError:
                # The node closed an idle connection just as it was taken from the pool.
                response = pool.urlopen("POST", path, body=body, redirect=False)
        except HTTPError as error:
            raise _NodeFault(type(error).__name__) from error
        if response.status != 200:
            raise _NodeFault(f"HTTP {response.status}")
        return response.data


def _replies(body: bytes, count: int, accepts: Callable[[RpcError], bool]) -> list[Any]:
    try:
        answers = json.loads(body)
    except ValueError as error:
        raise _NodeFault("not JSON") from error
    if not isinstance(answers, list):
        raise _NodeFault("no batch in the answer")
    found = {answer["id"]: answer for answer in answers if isinstance(answer, dict) and "id" in answer}
    if any(place not in found for place in range(count)):
        raise _NodeFault("answers are missing")
    return [_reply(found[place], accepts) for place in range(count)]


def _reply(answer: dict[str, Any], accepts: Callable[[RpcError], bool]) -> Any:
    told = answer.get("error")
    if told is None:
        return answer.get("result")
    if not isinstance(told, dict) or not isinstance(told.get("code"), int):
        raise _NodeFault("an error without a code")
    error = RpcError(code=told["code"], message=str(told.get("message", "")), data=told.get("data"))
    if not accepts(error):
        raise _NodeFault(f"JSON-RPC error {error.code}")
    return error
