"""
Merkle trees as defined by RFC 6962: of a list, of a stream, and the path from a leaf to the root.

Leaves and inner nodes are hashed with different first bytes, so that neither passes as the other. If a level has an
odd number of nodes, its last node moves up unchanged.
"""

from collections.abc import Iterator
from hashlib import sha256

HASH_BYTES = 32
_LEAF, _NODE = b"\x00", b"\x01"


def leaf_hash(text: str) -> bytes:
    return sha256(_LEAF + text.encode()).digest()


def nodes_of(leaves: bytes) -> bytes:
    """Return all hashes of the tree over these leaf hashes, level by level; the last one is the root."""
    nodes = bytearray(leaves or sha256(b"").digest())
    start = 0
    while (end := len(nodes)) - start > HASH_BYTES:
        for at in range(start, end - HASH_BYTES, 2 * HASH_BYTES):
            nodes += sha256(_NODE + nodes[at : at + 2 * HASH_BYTES]).digest()
        if (end - start) // HASH_BYTES % 2:
            nodes += nodes[end - HASH_BYTES : end]
        start = end
    return bytes(nodes)


def path_places(leaf: int, size: int) -> Iterator[tuple[str, int]]:
    """Yield the path of a leaf: the side of each sibling, and its position in `nodes_of`."""
    start = 0
    while size > 1:
        sibling = leaf ^ 1
        if sibling < size:
            yield ("left" if sibling < leaf else "right", start + sibling)
        start, leaf, size = start + size, leaf // 2, (size + 1) // 2


class Stream:
    """Computes the root over a stream of leaves; it keeps one hash per level in memory."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Append the next leaf's hash."""
        node, self.size = leaf, self.size + 1
        # Each trailing zero bit of the new size is a complete subtree to the left.
        whole = self.size
        while whole % 2 == 0:
            node = sha256(_NODE + self._peaks.pop() + node).digest()
            whole //= 2
        self._peaks.append(node)

    def root(self) -> bytes:
        """Return the root over all leaves so far."""
        if not self._peaks:
            return sha256(b"").digest()
        *left, node = self._peaks
        for peak in reversed(left):
            node = sha256(_NODE + peak + node).digest()
        return node
