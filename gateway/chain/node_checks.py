"""Checks every few seconds which nodes stay in the rotation."""

import logging
import statistics
import threading
from concurrent.futures import wait

from gateway.chain.node import CHAIN_ID, CONNECT_SECONDS, NEWEST_BLOCK, WRONG_CHAIN, Node
from gateway.chain.nodes import Nodes
from gateway.chain.rpc import NodeFault
from gateway.chain.types import Head
from gateway.common import clock

logger = logging.getLogger(__name__)
_INTERVAL_SECONDS = 3.0


class NodeChecks(threading.Thread):
    """Checks the nodes every few seconds, from `start` until `stop` or the end of the process."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(name="node-checks", daemon=True)
        self._nodes, self._stopping = nodes, threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.check()
            except Exception:
                logger.exception("the nodes could not be checked; the next check follows")
            self._stopping.wait(_INTERVAL_SECONDS)

    def stop(self) -> None:
        """End after the current check."""
        self._stopping.set()
        self.join()

    def check(self) -> None:
        """Read each node's chain and newest block, and take nodes out of the rotation or put them back."""
        futures = [node.threads.submit(self._head, node) for node in self._nodes]
        wait(futures, timeout=max(node.check_seconds for node in self._nodes) + CONNECT_SECONDS)
        heads = [future.result() if future.done() else None for future in futures]
        numbers = [head.number for head in heads if head is not None]
        now = clock.now().timestamp()
        for node, head in zip(self._nodes, heads, strict=True):
            if head is not None:
                node.head = head
                node.set_fault(self._fault_of(head, statistics.median_high(numbers), now))

    def _head(self, node: Node) -> Head | None:
        """
        Return the node's newest block; None if it does not respond, returns invalid responses, or is of another chain.
        """
        try:
            chain_id, head = node.check([CHAIN_ID, NEWEST_BLOCK])
        except NodeFault as fault:
            if fault.is_wrong:
                node.note_wrong(fault)
                node.set_fault(f"invalid response: {fault}")
            return None
        if node.is_of_our_chain(chain_id):
            newest: Head = head
            return newest
        node.set_fault(WRONG_CHAIN)
        return None

    def _fault_of(self, head: Head, usual_number: int, now: float) -> str:
        """Return why the node leaves the rotation; `usual_number` is the median height, the higher one of two nodes."""
        limits = self._nodes.limits
        if limits.max_head_age_seconds and head.timestamp < now - limits.max_head_age_seconds:
            return "its newest block is too old"
        if head.number < usual_number - limits.max_lag_blocks:
            return f"it is {usual_number - head.number} blocks behind"
        return ""
