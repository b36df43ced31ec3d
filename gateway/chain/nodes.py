"""
The rotation of the chain's nodes: chooses the node for each request, and fails over to the next one.

Every request is safe to repeat, because it is a read or sends the same signed bytes. After any fault of a node, the
next node therefore gets the request. `node_checks` takes nodes out of the rotation that are on another chain, have
stopped or lag behind, and puts them back.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from gateway.chain.errors import no_node_responds
from gateway.chain.node import CONNECT_SECONDS, Node, Result
from gateway.chain.rpc import Call, NodeFault
from gateway.chain.types import NodeHealth
from gateway.common.guards import CircuitOpen, Guard

CHECK_SECONDS = 2.0
# How much longer to wait for the other nodes after enough have responded.
_GRACE_SECONDS = 1.0
# The maximum number of concurrent probes.
_MAX_PROBES = 2
# How many other nodes are queried about the size of a response that one node calls too large.
_MOST_WITNESSES = 2


class NodeLimits(NamedTuple):
    """Limits for a node: the chain's id, and how old or far behind its newest block may be (0: any age)."""

    chain_id: int | None = None
    max_head_age_seconds: int = 0
    max_lag_blocks: int = 5


ANY_CHAIN = NodeLimits()
# Of this thread's reads: the nodes that responded, and those that must not be used.
_reads: ContextVar[tuple[set[str], Collection[str]]] = ContextVar("reads")


@contextmanager
def heard_nodes(*, without: Collection[str] = ()) -> Iterator[set[str]]:
    """Yield the names of the nodes that respond to this thread's single reads; nodes in `without` are not used."""
    heard: set[str] = set()
    token = _reads.set((heard, tuple(without)))
    try:
        yield heard
    finally:
        _reads.reset(token)


class Nodes:
    """The nodes at a list of URLs. Safe to share between threads."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        timeout_seconds: float,
        check_seconds: float = CHECK_SECONDS,
        limits: NodeLimits = ANY_CHAIN,
        places: int = 8,
    ) -> None:
        """At most `places` threads wait for the nodes, all together; `check_seconds` is the timeout of checks."""
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
        """Return each node's health, as this process has seen it."""
        return [node.health() for node in self._nodes]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def read(self, read: Callable[[Node], Result]) -> Result:
        """
        Call `read` with a node of the rotation and return its result; after any fault, try the next node.

        Raises:
            NodeUnavailable: no node responded correctly.
        """
        heard, without = _reads.get((set(), ()))
        for node in self._in_rotation(1):
            if node.name in without:
                continue
            with suppress(NodeFault):
                result = node.read(read)
                heard.add(node.name)
                return result
        raise no_node_responds()

    def batch(self, calls: Sequence[Call], *, checked: bool = False) -> list[Any]:
        """
        Return each call's value, in order. One node of the rotation responds to all calls.

        With `checked`, the same request verifies that the node is on our chain. A node gets more calls than it accepts
        in one batch in several requests.

        Raises:
            NodeUnavailable: no node responded correctly.
        """
        return self.read(lambda node: node.batch(calls, checked=checked))

    def probe(self, calls: Sequence[Call], *, timeout_seconds: float) -> list[Any]:
        """
        Return each call's result from the first node; a best-effort read that fails fast.

        At most `_MAX_PROBES` threads probe at the same time, and after three failures in a row none does for ten
        seconds. A caller therefore rarely waits, and never longer than twice the timeout.

        Raises:
            NodeUnavailable: the node did not respond in time, is failing, or too many threads probe.
        """
        heard, without = _reads.get((set(), ()))
        node = next((node for node in self._in_rotation(1) if node.name not in without), None)
        if node is None or node.guard.is_open or node.backs_off_until > time.monotonic():
            raise no_node_responds()
        try:
            with self._probes.place():
                try:
                    values = node.probe(calls, timeout_seconds=timeout_seconds)
                except NodeFault:
                    self._probes.failed()
                    raise
                heard.add(node.name)
                return values
        except (NodeFault, CircuitOpen) as error:
            raise no_node_responds() from error

    def read_each(self, read: Callable[[Node], Result], *, enough: int) -> list[Result]:
        """
        Read from all nodes of the rotation in parallel; return the responses that arrive in time.

        Once `enough` nodes have responded, the others get one more second.
        """
        nodes = self._in_rotation(enough)
        if len(self._nodes) == 1:
            return [result for node in nodes if (result := _result_of(read, node)) is not None]
        pending = {node.threads.submit(_result_of, read, node) for node in nodes}
        results: list[Result] = []
        ends_at = time.monotonic() + 2 * self._timeout_seconds + CONNECT_SECONDS
        while pending and (left := ends_at - time.monotonic()) > 0:
            done, pending = wait(pending, timeout=left, return_when=FIRST_COMPLETED)
            results += [result for future in done if (result := future.result()) is not None]
            if len(results) >= enough:
                ends_at = min(ends_at, time.monotonic() + _GRACE_SECONDS)
        return results

    def doubt(self, names: Collection[str]) -> None:
        """Try these nodes last for a while: they refused what other nodes approve."""
        for node in self._nodes:
            if node.name in names:
                node.doubt()

    def _is_contradicted(self, node: Node, call: Call) -> bool:
        """
        Return whether another node's response to the call is within the size limit, and no other node's is above it.

        One node of three therefore cannot discredit the two others. If no other node responds, or only with an error,
        which may be that node's own limit, this node is trusted.
        """
        is_contradicted = False
        for other in [one for one in self._in_rotation(1) if one is not node][:_MOST_WITNESSES]:
            with suppress(NodeFault):
                is_within_limit = other.read(lambda witness: witness.responds_within_limit(call))
                if is_within_limit is False:
                    return False
                is_contradicted = is_contradicted or bool(is_within_limit)
        return is_contradicted

    def _in_rotation(self, needed: int) -> list[Node]:
        """
        Return the nodes to use, best first. Those that return invalid responses count only if fewer than `needed` are
        left.
        """
        now = time.monotonic()
        fit = [node for node in self._nodes if not node.fault]
        right = [node for node in fit if not node.is_wrong]
        return sorted(
            right if len(right) >= needed else fit,
            key=lambda node: (node.is_wrong, node.backs_off_until > now),
        )


def _result_of(read: Callable[[Node], Result], node: Node) -> Result | None:
    try:
        return node.read(read)
    except NodeFault:
        return None


def _names(urls: Iterable[str]) -> list[str]:
    """Return a name for each URL: its host and port, with a number if several have the same."""
    names: list[str] = []
    for url in urls:
        place = urlsplit(url).netloc.rpartition("@")[2]
        count = sum(name.partition("#")[0] == place for name in names)
        names.append(f"{place}#{count + 1}" if count else place)
    return names
