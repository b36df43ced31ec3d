"""
One node of the chain: its requests, the batch size that it accepts, and the effect of its failures on the rotation.

Any error while the service reads a node's responses is the node's fault. The URL may contain an access key, so no log
and no error shows it.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from gateway.chain import responses
from gateway.chain.batches import oversized_by_contract, oversized_by_node
from gateway.chain.connection import Flows, NodeConnection
from gateway.chain.rpc import (
    BatchRefused,
    Call,
    HttpFault,
    MalformedResponse,
    NodeFault,
    RpcError,
    SenderShort,
    TooLarge,
)
from gateway.chain.sender_funds import with_funds
from gateway.chain.types import Head, NodeHealth
from gateway.common import clock, metrics
from gateway.common.guards import CircuitOpen, Guard

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

CONNECT_SECONDS = 2.0
# A node that failed is tried last for this long, so that not every request waits for its timeout again.
_BACKOFF_SECONDS = 10.0
# The number of requests and checks of which the failed ones are counted; checks alone take a minute for them.
_RECENT = 20
# A node that returned an invalid response leaves the rotation for this long, unless too few others are left.
_WRONG_SECONDS = 60.0
# How long a node counts as one of our chain after it said so. Checks ask more often, so that requests rarely have to.
_SAME_CHAIN_SECONDS = 15.0
MAX_BATCH = 200
# After this time, a node that accepted only smaller batches is sent a large one again.
_LIMIT_SECONDS = 3600.0
# Concurrent requests to one node while several nodes are read together.
_THREADS_PER_NODE = 3
WRONG_CHAIN = "it is of another chain"

NEWEST_BLOCK = Call(
    "eth_getBlockByNumber", ["latest", False], responses.head, max_bytes=responses.BLOCK_BYTES
)
CHAIN_ID = Call("eth_chainId", [], responses.quantity)


class _BatchLimit:
    """The number of calls that a node accepts in a batch, learned from refused batches."""

    def __init__(self, name: str) -> None:
        self._name, self._limit, self._valid_until = name, MAX_BATCH, 0.0

    def current(self) -> int:
        return self._limit if time.monotonic() < self._valid_until else MAX_BATCH

    def learn(self, limit: int) -> None:
        if limit != self._limit:
            logger.warning("chain node %s takes at most %d calls in a batch", self._name, limit)
        self._limit, self._valid_until = limit, time.monotonic() + _LIMIT_SECONDS
        metrics.CHAIN_BATCH_LIMIT.add(self._name, str(limit))


class Node:
    """One node. Safe to share between threads; each thread has its own connection."""

    def __init__(
        self,
        url: str,
        name: str,
        *,
        chain_id: int | None,
        timeout_seconds: float,
        check_seconds: float,
        places: int,
        is_contradicted: Callable[["Node", Call], bool],
    ) -> None:
        """
        `is_contradicted` returns whether other nodes' responses to a call are within its limit, unlike this node's.
        """
        self.name = name
        self.timeout_seconds, self.check_seconds = timeout_seconds, check_seconds
        self.guard = Guard(places=places)
        self.head: Head | None = None
        # Why the last check took the node out of the rotation; empty if the node is in it.
        self.fault = ""
        # After a failure: until this time, the node is tried after the others.
        self.backs_off_until = 0.0
        self._url, self._chain_id, self._is_contradicted = url, chain_id, is_contradicted
        self._thread = threading.local()
        self._flows = Flows()
        self._limit = _BatchLimit(name)
        # The node's last invalid response, and until when it keeps the node out of the rotation.
        self._wrong, self._wrong_until = "", 0.0
        self._is_failing = False
        self._failed: deque[bool] = deque(maxlen=_RECENT)
        # Why the node did not respond the last time.
        self._away = ""
        # Until when the node counts as one of our chain.
        self._same_chain_until = 0.0

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        """Threads for requests to several nodes at once."""
        return ThreadPoolExecutor(_THREADS_PER_NODE, thread_name_prefix="node")

    @property
    def is_wrong(self) -> bool:
        """
        Whether the node has recently returned an invalid response, so that it is used only if too few others are left.
        """
        return time.monotonic() < self._wrong_until

    def read(self, read: Callable[["Node"], Result]) -> Result:
        """
        Call `read` with this node and return its result. Any exception that it raises counts as this node's fault.

        Raises:
            NodeFault: the node did not respond, or not correctly; for a while it is tried last, or not at all.
        """
        try:
            result = read(self)
        except NodeFault as fault:
            self._note_failure(fault)
            raise
        except Exception as error:
            wrong = MalformedResponse(f"unreadable ({type(error).__name__})")
            logger.exception("chain node %s: %s", self.name, wrong)
            self._note_failure(wrong)
            raise wrong from error
        if self._is_failing:
            self._is_failing = False
            logger.warning("chain node %s responds again", self.name)
        return result

    def batch(self, calls: Sequence[Call], *, checked: bool = False) -> list[Any]:
        """
        Return each call's value; see `ask`.

        Raises:
            NodeFault: the node did not respond to all calls, or not correctly.
        """
        return _all_values(self.ask(calls, checked=checked))

    def ask(self, calls: Sequence[Call], *, checked: bool = False) -> list[Any]:
        """
        Return each call's value, or the `NodeFault` in place of it, in order.

        The same request verifies that the node is on our chain, with `checked` always, else if no recent response has;
        unless the chain's id is what is asked.

        Raises:
            NodeFault: the node did not respond, is on another chain, or the response is not one to these calls.
        """
        if not calls:
            return []
        is_asked = checked or time.monotonic() > self._same_chain_until
        extra = [CHAIN_ID] if is_asked and self._chain_id is not None and list(calls) != [CHAIN_ID] else []
        with self._place():
            values = self._in_pieces(calls, extra, self.timeout_seconds)
            short = [place for place, value in enumerate(values) if isinstance(value, SenderShort)]
            funded = [with_funds(calls[place]) for place in short]
            for place, value in zip(short, self._in_pieces(funded, extra, self.timeout_seconds), strict=True):
                values[place] = value
        # The other nodes get the request after this node's place is released, because they need places as well.
        return self._attributed(calls, values)

    def responds_within_limit(self, call: Call) -> bool | None:
        """
        Return whether this node's response to one unbatched call is within the call's limit; None for an error.

        Raises:
            NodeFault: the node did not respond, or not correctly.
        """
        raw = call._replace(read=lambda result: result)
        try:
            with self._place():
                (value,) = _all_values(self._timed([raw], self.timeout_seconds))
        except TooLarge:
            return False
        return None if isinstance(value, RpcError) else True

    def probe(self, calls: Sequence[Call], *, timeout_seconds: float) -> list[Any]:
        """
        Return each call's value if the node responds in time; the timeout applies to connecting and to reading.

        Raises:
            NodeFault: the node did not respond in time. Its place in the rotation does not change.
        """
        return _all_values(self._timed(calls, timeout_seconds))

    def check(self, calls: Sequence[Call]) -> list[Any]:
        """
        Return each call's value, whether or not the node is in the rotation or its circuit is open.

        Raises:
            NodeFault: the node did not respond, or not correctly.
        """
        with self._failures_reported():
            values = _all_values(self._in_pieces(calls, [], self.check_seconds))
        self.guard.responded()
        return values

    def is_of_our_chain(self, chain_id: int) -> bool:
        """Return whether this is our chain's id, which the node has just named as its own; remember it for a while."""
        is_ours = self._chain_id in (None, chain_id)
        self._same_chain_until = time.monotonic() + _SAME_CHAIN_SECONDS if is_ours else 0.0
        return is_ours

    def set_fault(self, fault: str) -> None:
        """Take the node out of the rotation for this reason, or put it back if empty; log each change once."""
        if (fault == "") != (self.fault == ""):
            if fault:
                logger.warning("chain node %s leaves the rotation: %s", self.name, fault)
            else:
                logger.warning("chain node %s is back in the rotation", self.name)
        self.fault = fault

    def note_wrong(self, fault: NodeFault) -> None:
        """Count and log an invalid response to a single call; it has no effect on the rotation."""
        metrics.CHAIN_WRONG_ANSWERS.add(self.name, self._method_of(fault))
        logger.warning("chain node %s returned an invalid response: %s", self.name, fault)

    def doubt(self) -> None:
        """
        Try the node last for a while, because it refused what others approve.

        It stays in the rotation, since a contract may respond differently at two nodes' blocks.
        """
        logger.warning("chain node %s refused a request that other nodes approve", self.name)
        self.backs_off_until = time.monotonic() + _BACKOFF_SECONDS

    def health(self) -> NodeHealth:
        """Return the node's health, as this process has seen it."""
        fault = self.fault or (f"no response: {self._away}" if self.guard.is_open else "")
        fault = fault or (f"invalid response: {self._wrong}" if self.is_wrong else "")
        age = None if self.head is None else max(0.0, clock.now().timestamp() - self.head.timestamp)
        recent = list(self._failed)
        return NodeHealth(self.name, fault, age, sum(recent) / _RECENT if recent else 0.0)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Hold a place for a request to this node."""
        try:
            with self.guard.place(), self._failures_reported():
                yield
        except CircuitOpen as error:
            raise HttpFault(f"no recent response ({self._away or 'busy'})") from error

    def _attributed(self, calls: Sequence[Call], values: Sequence[Any]) -> list[Any]:
        """
        Return the values; replace each oversized response with the contract's failure.

        The first such call is also sent to other nodes. If they contradict this node, its response is this node's
        fault.
        """
        places = [place for place, value in enumerate(values) if isinstance(value, TooLarge)]
        attributed = list(values)
        for place in places:
            attributed[place] = oversized_by_contract(calls[place])
        if places and self._is_contradicted(self, calls[places[0]]):
            attributed[places[0]] = oversized_by_node(calls[places[0]])
        return attributed

    def _note_failure(self, fault: NodeFault) -> None:
        now = time.monotonic()
        self.backs_off_until = now + _BACKOFF_SECONDS
        if fault.is_wrong:
            metrics.CHAIN_WRONG_ANSWERS.add(self.name, self._method_of(fault))
            if not self.is_wrong:
                logger.warning("chain node %s leaves the rotation: invalid response: %s", self.name, fault)
            self._wrong, self._wrong_until = str(fault), now + _WRONG_SECONDS
        elif not self._is_failing:
            logger.warning("chain node %s failed: %s", self.name, fault)
        self._is_failing = True

    def _in_pieces(self, calls: Sequence[Call], extra: Sequence[Call], timeout_seconds: float) -> list[Any]:
        """
        Return the values of any number of calls, sent in batches that the node accepts; each batch also has `extra`.

        The timeout applies to each batch.
        """
        values: list[Any] = []
        size = self._limit.current()
        while len(values) < len(calls):
            piece = calls[len(values) : len(values) + max(1, size - len(extra))]
            try:
                if size > len(extra):
                    got = self._exchange([*piece, *extra], timeout_seconds)
                else:
                    got = [
                        *self._exchange(piece, timeout_seconds),
                        *self._exchange(extra, timeout_seconds),
                    ]
            except BatchRefused as refusal:
                sent = min(size, len(piece) + len(extra))
                if sent <= 1:
                    raise
                named = refusal.limit or 0
                size = named if 1 < named < sent else sent // 2
                continue
            if size < self._limit.current():
                self._limit.learn(size)
            values += got[: len(piece)]
            self._check_chain(got[len(piece) :])
        return values

    def _check_chain(self, chain_ids: Sequence[Any]) -> None:
        for chain_id in _all_values(chain_ids):
            if not self.is_of_our_chain(chain_id):
                raise NodeFault(WRONG_CHAIN)

    def _exchange(self, calls: Sequence[Call], timeout_seconds: float) -> list[Any]:
        """Return the values of one batch. If a response is too large, send the other calls again without that call."""
        ends_at = time.monotonic() + timeout_seconds
        values: list[Any] = [None] * len(calls)
        waiting = [list(range(len(calls)))]
        while waiting:
            if time.monotonic() > ends_at:
                raise HttpFault("TimeoutError")
            places = waiting.pop()
            try:
                got = self._timed([calls[place] for place in places], timeout_seconds)
            except TooLarge as fault:
                if fault.place is not None:
                    values[places.pop(fault.place)] = fault
                    waiting += [places] if places else []
                elif len(places) > 1:
                    half = len(places) // 2
                    waiting += [places[half:], places[:half]]
                else:
                    raise
            else:
                for place, value in zip(places, got, strict=True):
                    values[place] = value
        return values

    @contextmanager
    def _failures_reported(self) -> Iterator[None]:
        """
        Report to the circuit breaker whether the node did not respond, or returned an invalid response or an
        error.
        """
        try:
            yield
        except HttpFault as fault:
            self._away = str(fault)
            self._failed.append(True)
            self.guard.failed()
            raise
        except NodeFault:
            self._failed.append(True)
            self.guard.responded()
            raise
        self._failed.append(False)

    def _timed(self, calls: Sequence[Call], timeout_seconds: float) -> list[Any]:
        self._thread.method = calls[0].method
        started = time.perf_counter()
        try:
            return self._connection(timeout_seconds).batch(calls)
        finally:
            metrics.CHAIN_REQUEST.observe(time.perf_counter() - started, self.name)

    def _method_of(self, fault: NodeFault) -> str:
        """Return the method that got an invalid response; that of the first call if the whole body is wrong."""
        method: str = fault.method or getattr(self._thread, "method", "")
        return method

    def _connection(self, timeout_seconds: float) -> NodeConnection:
        """Return this thread's connection with that timeout."""
        connections: dict[float, NodeConnection] = self._thread.__dict__.setdefault("connections", {})
        connection = connections.get(timeout_seconds)
        if connection is None:
            connection = connections[timeout_seconds] = NodeConnection(
                self._url,
                flows=self._flows,
                connect_seconds=min(CONNECT_SECONDS, timeout_seconds),
                read_seconds=timeout_seconds,
            )
        return connection


def _all_values(values: Sequence[Any]) -> list[Any]:
    """
    Return the values.

    Raises:
        NodeFault: one of the values is this fault.
    """
    for value in values:
        if isinstance(value, NodeFault):
            raise value
    return list(values)
