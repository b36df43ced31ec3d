"""
The nodes of the chain: which of them take requests, and which of them gets a request.

Every request is safe to repeat (reads, and transactions that are the same bytes), so after any fault of a node
the next one gets it. `node_checks` takes nodes out of the rotation that are on another chain, have stopped or lag
behind, and puts them back.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from gateway.chain.errors import no_answer
from gateway.chain.node import CONNECT_SECONDS, Answer, Node
from gateway.chain.rpc import Call, NodeFault
from gateway.chain.types import NodeHealth
from gateway.common.guards import CircuitOpen, Guard

CHECK_SECONDS = 2.0
# How long the other nodes may still take once enough have answered.
_GRACE_SECONDS = 1.0
# Threads that may probe at a time.
_MAX_PROBES = 2
# How many other nodes are asked whether an answer is really as large as one node returned.
_MOST_WITNESSES = 2


class NodeLimits(NamedTuple):
    """Limits for a node: the chain's id, and how old or far behind its newest block may be (0: any age)."""

    chain_id: int | None = None
    max_head_age_seconds: int = 0
    max_lag_blocks: int = 5


ANY_CHAIN = NodeLimits()


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
        self._probes = Guard(places=_MAX_PROBES, wait_seconds=0)
        self._nodes = [
            Node(
                url,
                name,
                chain_id=limits.chain_id,
                timeout_seconds=timeout_seconds,
                check_seconds=check_seconds,
                places=max(2, places // max(1, len(urls))),
                is_contradicted=self._is_contradicted,
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

    def read(self, read: Callable[[Node], Answer]) -> Answer:
        """
        Return what `read` makes of the answers of one node of the rotation; after any fault, the next one is asked.

        Raises:
            NodeUnavailable: no node answered correctly.
        """
        for node in self._in_rotation(1):
            with suppress(NodeFault):
                return node.read(read)
        raise no_answer()

    def batch(self, calls: Sequence[Call], *, checked: bool = False) -> list[Any]:
        """
        Return each call's value, in order. One node of the rotation answers all.

        With `checked` the node confirms in the same request that it is of our chain. More than 200 calls go in
        several requests.

        Raises:
            NodeUnavailable: no node answered correctly.
        """
        return self.read(lambda node: node.batch(calls, checked=checked))

    def probe(self, calls: Sequence[Call], *, timeout_seconds: float) -> list[Any]:
        """
        Return each call's result from the first node; a best-effort read that fails fast.

        At most `_MAX_PROBES` threads probe at a time, and after three failures in a row no thread does for ten
        seconds. So a caller rarely waits, and never longer than twice the timeout.

        Raises:
            NodeUnavailable: the node did not answer in time, is failing, or too many threads probe.
        """
        node = next(iter(self._in_rotation(1)), None)
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
        nodes = self._in_rotation(enough)
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

    def _is_contradicted(self, node: Node, call: Call) -> bool:
        """
        Return whether another node answers the call within its size limit, and none above it.

        So one node of three cannot discredit the two others. If no other node answers, or only with an error, which may
        be its own limit, this node is trusted.
        """
        is_contradicted = False
        for other in [one for one in self._in_rotation(1) if one is not node][:_MOST_WITNESSES]:
            with suppress(NodeFault):
                is_within_limit = other.read(lambda witness: witness.answers_within_limit(call))
                if is_within_limit is False:
                    return False
                is_contradicted = is_contradicted or bool(is_within_limit)
        return is_contradicted

    def _in_rotation(self, needed: int) -> list[Node]:
        """Return the nodes to ask, the best first; those that answer wrongly only if `needed` are not left without."""
        now = time.monotonic()
        fit = [node for node in self._nodes if not node.fault]
        right = [node for node in fit if not node.is_wrong]
        return sorted(
            right if len(right) >= needed else fit,
            key=lambda node: (node.is_wrong, node.backs_off_until > now),
        )


def _answer_of(read: Callable[[Node], Answer], node: Node) -> Answer | None:
    try:
        return node.read(read)
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
