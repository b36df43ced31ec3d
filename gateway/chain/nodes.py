"""
The nodes of the chain: which of them take requests, and which of them gets a request.

Every request is safe to repeat (reads, and transactions that are the same bytes), so after any fault of a node
the next one gets it. `node_checks` takes nodes out of the rotation that are on another chain, have stopped or lag
behind, and puts them back. URLs may hold access keys, so no log and no error shows them.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from gateway.chain.errors import NodeUnavailable, no_answer
from gateway.chain.rpc import Call, HttpFault, NodeConnection, NodeFault, RpcError
from gateway.chain.types import Head, NodeHealth
from gateway.common import clock, metrics
from gateway.common.guards import CircuitOpen, Guard

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")

CONNECT_SECONDS, CHECK_SECONDS = 2.0, 2.0
# A node that failed is tried last for this long, so that not every request waits for its timeout again.
_BACKOFF_SECONDS = 10.0
_MAX_BATCH = 200
# How long the other nodes may still take once enough have answered.
_GRACE_SECONDS = 1.0
# Requests to one node at a time where several nodes are read together.
_THREADS_PER_NODE = 3
# Threads that may probe at a time.
_MAX_PROBES = 2
WRONG_CHAIN = "it is of another chain"

NEWEST_BLOCK: Call = ("eth_getBlockByNumber", ["latest", False])
_CHAIN_ID: Call = ("eth_chainId", [])


class NodeLimits(NamedTuple):
    """Limits for a node: the chain's id, and how old or far behind its newest block may be (0: any age)."""

    chain_id: int | None = None
    max_head_age_seconds: int = 0
    max_lag_blocks: int = 5


ANY_CHAIN = NodeLimits()


class Node:
    """One node. Safe to share between threads, each of which has a connection of its own."""

    def __init__(
        self,
        url: str,
        name: str,
        *,
        chain_id: int | None,
        timeout_seconds: float,
        check_seconds: float,
        places: int,
    ) -> None:
        self.name = name
        self.timeout_seconds, self.check_seconds = timeout_seconds, check_seconds
        self.guard = Guard(places=places)
        self.head: Head | None = None
        # Why it is out of the rotation, by its last check; empty where it is in.
        self.fault = ""
        # It failed just now: until then it is tried after the others.
        self.backs_off_until = 0.0
        self._url, self._chain_id = url, chain_id
        self._thread = threading.local()
        self._is_failing = False

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        """Threads for requests to several nodes at once."""
        return ThreadPoolExecutor(_THREADS_PER_NODE, thread_name_prefix="node")

    def batch(
        self, calls: Sequence[Call], *, accepts: Callable[[RpcError], bool], checked: bool = False
    ) -> list[Any]:
        """
        Return each call's result or accepted error; with `checked` only if the node is still of our chain.

        Raises:
            NodeFault: the node did not answer, or not correctly; for a while it is tried last.
        """
        try:
            answers: list[Any] = []
            for start in range(0, len(calls), _MAX_BATCH):
                piece = calls[start : start + _MAX_BATCH]
                answers += self._checked(piece, accepts) if checked else self._guarded(piece, accepts)
        except NodeFault as fault:
            self.backs_off_until = time.monotonic() + _BACKOFF_SECONDS
            if not self._is_failing:
                logger.warning("chain node %s failed: %s", self.name, fault)
            self._is_failing = True
            raise
        if self._is_failing:
            self._is_failing = False
            logger.warning("chain node %s answers again", self.name)
        return answers

    def probe(self, calls: Sequence[Call], *, timeout_seconds: float) -> list[Any]:
        """
        Return each call's result if the node answers within this timeout, which holds for connecting and for reading.

        Raises:
            NodeFault: it did not. The node's place in the rotation stays as it is.
        """
        return self._timed(calls, _never, timeout_seconds)

    def check(self, calls: Sequence[Call]) -> list[Any]:
        """
        Return each call's result, whether or not the node is in the rotation or its circuit is open.

        Raises:
            NodeFault: it did not answer, or answered with an error.
        """
        with self._failures_reported():
            answers = self._timed(calls, _never, self.check_seconds)
        self.guard.answered()
        return answers

    def set_fault(self, fault: str) -> None:
        """Take the node out of the rotation for this reason, or with none put it back; each change is logged once."""
        if (fault == "") != (self.fault == ""):
            if fault:
                logger.warning("chain node %s leaves the rotation: %s", self.name, fault)
            else:
                logger.warning("chain node %s is back in the rotation", self.name)
        self.fault = fault

    def health(self) -> NodeHealth:
        """Return what this process knows of the node."""
        fault = self.fault or ("no answer" if self.guard.is_open else "")
        age = None if self.head is None else max(0.0, clock.now().timestamp() - self.head.timestamp)
        return NodeHealth(self.name, fault, age)

    def _checked(self, calls: Sequence[Call], accepts: Callable[[RpcError], bool]) -> list[Any]:
        if self._chain_id is None or not calls:
            return self._guarded(calls, accepts)
        *answers, chain_id = self._guarded([*calls, _CHAIN_ID], accepts)
        if chain_id != hex(self._chain_id):
            raise NodeFault(WRONG_CHAIN)
        return answers

    def _guarded(self, calls: Sequence[Call], accepts: Callable[[RpcError], bool]) -> list[Any]:
        if not calls:
            return []
        try:
            with self.guard.place(), self._failures_reported():
                return self._timed(calls, accepts, self.timeout_seconds)
        except CircuitOpen as error:
            raise NodeFault("no answer lately") from error

    @contextmanager
    def _failures_reported(self) -> Iterator[None]:
        """Report to the circuit breaker whether the node failed to answer, or answered by an error."""
        try:
            yield
        except HttpFault:
            self.guard.failed()
            raise
        except NodeFault:
            self.guard.answered()
            raise

    def _timed(
        self, calls: Sequence[Call], accepts: Callable[[RpcError], bool], timeout_seconds: float
    ) -> list[Any]:
        started = time.perf_counter()
        try:
            return self._connection(timeout_seconds).batch(calls, accepts)
        finally:
            metrics.CHAIN_REQUEST.observe(time.perf_counter() - started, self.name)

    def _connection(self, timeout_seconds: float) -> NodeConnection:
        """Return this thread's connection with that timeout."""
        connections: dict[Any, NodeConnection] = self._thread.__dict__
        connection = connections.get(timeout_seconds)
        if connection is None:
            connection = connections[timeout_seconds] = NodeConnection(
                self._url,
                connect_seconds=min(CONNECT_SECONDS, timeout_seconds),
                read_seconds=timeout_seconds,
            )
        return connection


class Nodes:
    """The nodes of a list. Safe to share between threads."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        timeout_seconds: float,
        check_seconds: float = CHECK_SECONDS,
        limits: NodeLimits = ANY_CHAIN,
        places: int = 8,
    ) -> None:
        """`places` is how many threads may wait for all nodes together; `check_seconds` is the timeout of checks."""
        self.limits, self._timeout_seconds = limits, timeout_seconds
        self._probes = Guard(places=_MAX_PROBES, patience_seconds=0)
        self._nodes = [
            Node(
                url,
                name,
                chain_id=limits.chain_id,
                timeout_seconds=timeout_seconds,
                check_seconds=check_seconds,
                places=max(2, places // max(1, len(urls))),
            )
            for url, name in zip(urls, _names(urls), strict=True)
        ]

    def __len__(self) -> int:
        return len(self._nodes)

    def health(self) -> list[NodeHealth]:
        """Return what this process knows of each node."""
        return [node.health() for node in self._nodes]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def batch(
        self, calls: Sequence[Call], *, accepts: Callable[[RpcError], bool], checked: bool = False
    ) -> list[Any]:
        """
        Return each call's result, or the `RpcError` that `accepts` lets pass, in the order of `calls`.

        One node of the rotation answers all. Any other error is a fault of the node, and the next one gets the calls.
        With `checked` the node confirms in the same request that it is of our chain. More than 200 calls go in
        several requests.

        Raises:
            NodeUnavailable: no node answered.
        """
        for node in self._in_rotation():
            try:
                return node.batch(calls, accepts=accepts, checked=checked)
            except NodeFault:
                continue
        raise no_answer()

    def probe(self, calls: Sequence[Call], *, timeout_seconds: float) -> list[Any]:
        """
        Return each call's result from the first node; a best-effort read that fails fast.

        At most `_MAX_PROBES` threads probe at a time, and after three failures in a row no thread does for ten
        seconds. So a caller rarely waits, and never longer than twice the timeout.

        Raises:
            NodeUnavailable: the node did not answer in time, is failing, or too many threads probe.
        """
        node = next(iter(self._in_rotation()), None)
        if node is None or node.guard.is_open or node.backs_off_until > time.monotonic():
            raise no_answer()
        try:
            with self._probes.place():
                try:
                    return node.probe(calls, timeout_seconds=timeout_seconds)
                except NodeFault:
                    self._probes.failed()
                    raise
        except (NodeFault, CircuitOpen) as error:
            raise no_answer() from error

    def read_each(self, read: Callable[[Node], Answer], *, enough: int) -> list[Answer]:
        """
        Read from every node of the rotation at once; return the answers of those that gave one in time.

        Once `enough` of them have answered, the others have another second.
        """
        nodes = self._in_rotation()
        if len(self._nodes) == 1:
            return [answer for node in nodes if (answer := _answer_of(read, node)) is not None]
        pending = {node.threads.submit(_answer_of, read, node) for node in nodes}
        answers: list[Answer] = []
        ends_at = time.monotonic() + 2 * self._timeout_seconds + CONNECT_SECONDS
        while pending and (left := ends_at - time.monotonic()) > 0:
            done, pending = wait(pending, timeout=left, return_when=FIRST_COMPLETED)
            answers += [answer for future in done if (answer := future.result()) is not None]
            if len(answers) >= enough:
                ends_at = min(ends_at, time.monotonic() + _GRACE_SECONDS)
        return answers

    def _in_rotation(self) -> list[Node]:
        now = time.monotonic()
        fit = [node for node in self._nodes if not node.fault]
        return sorted(fit, key=lambda node: node.backs_off_until > now)


def _answer_of(read: Callable[[Node], Answer], node: Node) -> Answer | None:
    try:
        return read(node)
    except (NodeFault, NodeUnavailable):
        return None


def _names(urls: Iterable[str]) -> list[str]:
    """Return a name for each: its host and port, numbered where several have the same."""
    names: list[str] = []
    for url in urls:
        place = urlsplit(url).netloc.rpartition("@")[2]
        count = sum(name.partition("#")[0] == place for name in names)
        names.append(f"{place}#{count + 1}" if count else place)
    return names


def _never(_: RpcError) -> bool:
    return False
