"""
The nodes of the chain: which of them are fit to be asked, and who is asked what.

Every request is safe to repeat (reads, and transactions that are the same bytes), so after any fault of a node
the next one is asked. A node of another chain, one that has stopped and one that lags leave the rotation by a
check and return by one. URLs may hold access keys, so no log and no error shows them.
"""

import logging
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from gateway.chain.errors import NodeUnavailable, no_answer
from gateway.chain.rpc import Call, HttpFault, NodeConnection, NodeFault, RpcError, head_of
from gateway.chain.types import Head, NodeHealth
from gateway.common import durations
from gateway.common.guards import Guard, NotLetThrough

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")

_CONNECT_SECONDS = 2.0
_CHECKED_EVERY_SECONDS = 3.0
# How long a node may take to answer a check.
_CHECK_SECONDS = 2.0
# A node that failed is asked last for this long, so that not every request waits for its timeout again.
_REST_SECONDS = 10.0
_BATCH_LIMIT = 200
# How long nodes are waited for once enough others have answered.
_PATIENCE_SECONDS = 1.0
# How many questions to one node run beside each other where several nodes are asked together.
_SIDE_BY_SIDE = 3
# How many threads may glance at the nodes at a time.
_GLANCES = 2
_WRONG_CHAIN = "it is of another chain"

NEWEST_BLOCK: Call = ("eth_getBlockByNumber", ["latest", False])
_CHAIN_ID: Call = ("eth_chainId", [])


class Limits(NamedTuple):
    """What a node must keep to: the chain's id, and how old or far behind its newest block may be (0: any age)."""

    chain_id: int | None = None
    max_head_age_seconds: int = 0
    max_lag_blocks: int = 5


ANY_CHAIN = Limits()


class Node:
    """One node. Safe to share between threads, each of which has a connection of its own."""

    def __init__(
        self, url: str, name: str, *, chain_id: int | None, timeout_seconds: float, places: int
    ) -> None:
        self.name = name
        self.guard = Guard(places=places)
        self.head: Head | None = None
        # Why it is not asked at all, as the last check found; empty where it is.
        self.fault = ""
        # A node that failed just now is asked after the others.
        self.rests_until = 0.0
        self._url, self._chain_id, self._timeout_seconds = url, chain_id, timeout_seconds
        self._thread = threading.local()
        self._is_failing = False

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        """Threads for questions to several nodes at once."""
        return ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="node")

    def ask(
        self, calls: Sequence[Call], accepts: Callable[[RpcError], bool], *, checked: bool = False
    ) -> list[Any]:
        """
        Return each call's result or accepted error; with `checked` only if the node is still of our chain.

        Raises:
            NodeFault: it did not answer, or not so; it is asked last for a while.
        """
        try:
            answers: list[Any] = []
            for start in range(0, len(calls), _BATCH_LIMIT):
                piece = calls[start : start + _BATCH_LIMIT]
                answers += self._checked(piece, accepts) if checked else self._ask(piece, accepts)
        except NodeFault as fault:
            self.rests_until = time.monotonic() + _REST_SECONDS
            if not self._is_failing:
                logger.warning("chain node %s failed: %s", self.name, fault)
            self._is_failing = True
            raise
        if self._is_failing:
            self._is_failing = False
            logger.warning("chain node %s answers again", self.name)
        return answers

    def glance(self, calls: Sequence[Call], *, timeout_seconds: float) -> list[Any]:
        """
        Return each call's result if the node answers within so short a time, counted for connecting and for reading.

        Raises:
            NodeFault: it did not. That says nothing about the node: it stays where it is in the rotation.
        """
        return self._timed_batch(calls, _never, timeout_seconds)

    def _checked(self, calls: Sequence[Call], accepts: Callable[[RpcError], bool]) -> list[Any]:
        if self._chain_id is None or not calls:
            return self._ask(calls, accepts)
        *answers, chain_id = self._ask([*calls, _CHAIN_ID], accepts)
        if chain_id != hex(self._chain_id):
            raise NodeFault(_WRONG_CHAIN)
        return answers

    def check(self) -> Head:
        """
        Ask for chain and newest block, whether or not the node is in the rotation.

        Raises:
            NodeFault: it does not answer, or is of another chain.
        """
        with self._failures_reported():
            chain_id, block = self._timed_batch([_CHAIN_ID, NEWEST_BLOCK], _never, _CHECK_SECONDS)
        self.guard.answered()
        if self._chain_id is not None and chain_id != hex(self._chain_id):
            self.set_fault(_WRONG_CHAIN)
            raise NodeFault(_WRONG_CHAIN)
        try:
            return head_of(block)
        except NodeUnavailable as error:
            raise NodeFault("no newest block") from error

    def set_fault(self, fault: str) -> None:
        """Leave the rotation for this reason, or with none return; each change is logged once."""
        if (fault == "") != (self.fault == ""):
            if fault:
                logger.warning("chain node %s leaves the rotation: %s", self.name, fault)
            else:
                logger.warning("chain node %s is back in the rotation", self.name)
        self.fault = fault

    def health(self) -> NodeHealth:
        """Return what is known of the node."""
        fault = self.fault or ("no answer" if self.guard.is_tripped else "")
        head = self.head
        if head is None:
            return NodeHealth(self.name, fault)
        return NodeHealth(self.name, fault, max(0.0, time.time() - head.timestamp))

    def _ask(self, calls: Sequence[Call], accepts: Callable[[RpcError], bool]) -> list[Any]:
        if not calls:
            return []
        try:
            with self.guard.place(), self._failures_reported():
                return self._timed_batch(calls, accepts, self._timeout_seconds)
        except NotLetThrough as error:
            raise NodeFault("no answer lately") from error

    @contextmanager
    def _failures_reported(self) -> Iterator[None]:
        """Tell the guard what an error says: that the node did not answer, or that it answered by a fault."""
        try:
            yield
        except HttpFault:
            self.guard.failed()
            raise
        except NodeFault:
            self.guard.answered()
            raise

    def _timed_batch(
        self, calls: Sequence[Call], accepts: Callable[[RpcError], bool], timeout_seconds: float
    ) -> list[Any]:
        started = time.perf_counter()
        try:
            return self._connection(timeout_seconds).batch(calls, accepts)
        finally:
            durations.CHAIN_REQUEST.observe(time.perf_counter() - started, self.name)

    def _connection(self, timeout_seconds: float) -> NodeConnection:
        """Return this thread's connection with that timeout."""
        connections: dict[Any, NodeConnection] = self._thread.__dict__
        connection = connections.get(timeout_seconds)
        if connection is None:
            connection = connections[timeout_seconds] = NodeConnection(
                self._url,
                connect_seconds=min(_CONNECT_SECONDS, timeout_seconds),
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
        limits: Limits = ANY_CHAIN,
        places: int = 8,
    ) -> None:
        """`places` is how many threads may wait for all nodes together."""
        self._limits, self._timeout_seconds = limits, timeout_seconds
        self._glances = Guard(places=_GLANCES, patience_seconds=0)
        self._nodes = [
            Node(
                url,
                name,
                chain_id=limits.chain_id,
                timeout_seconds=timeout_seconds,
                places=max(2, places // max(1, len(urls))),
            )
            for url, name in zip(urls, _names(urls), strict=True)
        ]

    def __len__(self) -> int:
        return len(self._nodes)

    def batch(
        self, calls: Sequence[Call], *, accepts: Callable[[RpcError], bool], checked: bool = False
    ) -> list[Any]:
        """
        Return each call's result, or the `RpcError` that `accepts` lets pass, in the order of `calls`.

        One fit node answers all. Any other error is a fault of the node, and the next one is asked. With `checked`
        the node says in the same request that it is of our chain. More than 200 calls go in several requests.

        Raises:
            NodeUnavailable: no node answered.
        """
        for node in self._in_rotation():
            try:
                return node.ask(calls, accepts, checked=checked)
            except NodeFault:
                continue
        raise no_answer()

    def glance(self, calls: Sequence[Call], *, timeout_seconds: float) -> list[Any]:
        """
        Return each call's result, from the first node alone and only if it is well and answers at once.

        For what is good to know and can wait. At most `_GLANCES` threads do so at a time, and after three failures
        in a row nobody does for ten seconds: who asks waits rarely, and never longer than twice the timeout.

        Raises:
            NodeUnavailable: there is no answer at once.
        """
        node = next(iter(self._in_rotation()), None)
        if node is None or node.guard.is_tripped or node.rests_until > time.monotonic():
            raise no_answer()
        try:
            with self._glances.place():
                try:
                    return node.glance(calls, timeout_seconds=timeout_seconds)
                except NodeFault:
                    self._glances.failed()
                    raise
        except (NodeFault, NotLetThrough) as error:
            raise no_answer() from error

    def ask_each(self, question: Callable[[Node], Answer], *, enough: int) -> list[Answer]:
        """
        Ask every node in the rotation at once; return the answers of those that gave one in time.

        Once `enough` of them have answered, the others have another second.
        """
        pending = {node.threads.submit(_answer_of, question, node) for node in self._in_rotation()}
        answers: list[Answer] = []
        ends_at = time.monotonic() + 2 * self._timeout_seconds + _CONNECT_SECONDS
        while pending and (left := ends_at - time.monotonic()) > 0:
            done, pending = wait(pending, timeout=left, return_when=FIRST_COMPLETED)
            answers += [answer for future in done if (answer := future.result()) is not None]
            if len(answers) >= enough:
                ends_at = min(ends_at, time.monotonic() + _PATIENCE_SECONDS)
        return answers

    def check(self) -> None:
        """Look at each node's chain and newest block, and let those that are unfit leave the rotation."""
        if len(self._nodes) == 1:
            heads = [_checked_head(self._nodes[0])]
        else:
            futures = [node.threads.submit(_checked_head, node) for node in self._nodes]
            wait(futures, timeout=_CHECK_SECONDS + _CONNECT_SECONDS)
            heads = [future.result() if future.done() else None for future in futures]
        numbers = [head.number for head in heads if head is not None]
        now = time.time()
        for node, head in zip(self._nodes, heads, strict=True):
            if head is not None:
                node.head = head
                node.set_fault(self._fault_of(head, statistics.median_high(numbers), now))

    def health(self) -> list[NodeHealth]:
        """Return what is known of each node."""
        return [node.health() for node in self._nodes]

    def _fault_of(self, head: Head, usual_number: int, now: float) -> str:
        """Of two nodes the higher is the usual one, of three the one in the middle."""
        oldest = self._limits.max_head_age_seconds
        if oldest and head.timestamp < now - oldest:
            return "its newest block is too old"
        if head.number < usual_number - self._limits.max_lag_blocks:
            return f"it is {usual_number - head.number} blocks behind"
        return ""

    def _in_rotation(self) -> list[Node]:
        now = time.monotonic()
        fit = [node for node in self._nodes if not node.fault]
        return sorted(fit, key=lambda node: node.rests_until > now)


class NodeChecks(threading.Thread):
    """Checks the nodes every few seconds, from `start` until `stop` or the end of the process."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(name="node-checks", daemon=True)
        self._nodes, self._stopping = nodes, threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._nodes.check()
            except Exception:
                logger.exception("the nodes could not be checked; the next check comes")
            self._stopping.wait(_CHECKED_EVERY_SECONDS)

    def stop(self) -> None:
        """End after the check that is under way."""
        self._stopping.set()
        self.join()


def _answer_of(question: Callable[[Node], Answer], node: Node) -> Answer | None:
    try:
        return question(node)
    except (NodeFault, NodeUnavailable):
        return None


def _checked_head(node: Node) -> Head | None:
    try:
        return node.check()
    except NodeFault:
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
