"""Hash trees against the values of the reference implementation of RFC 6962, and against each other."""

import random
from hashlib import sha256

import pytest

from proofs.merkle import HASH_BYTES, Stream, leaf_hash, nodes_of, path_places

# The leaves and roots of Certificate Transparency's own tests.
_LEAVES = [
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
]  # fmt: skip
_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


@pytest.mark.parametrize("size", range(1, 9))
def test_a_tree_has_the_root_of_the_reference_implementation(size: int) -> None:
    leaves = b"".join(leaf_hash(bytes.fromhex(leaf).decode()) for leaf in _LEAVES[:size])
    assert nodes_of(leaves)[-HASH_BYTES:].hex() == _ROOTS[size - 1]


def test_a_tree_without_leaves_has_the_hash_of_nothing() -> None:
    assert nodes_of(b"") == Stream().root() == sha256(b"").digest()


def test_a_stream_and_every_path_lead_to_the_root_of_the_tree() -> None:
    for size in (*range(1, 40), 1_000):
        leaves = [random.randbytes(32) for _ in range(size)]
        nodes, stream = _split(nodes_of(b"".join(leaves))), Stream()
        for leaf in leaves:
            stream.add(leaf)
        assert stream.root() == nodes[-1]
        for place in {0, size // 3, size - 1}:
            node = leaves[place]
            for side, sibling in path_places(place, size):
                pair = nodes[sibling] + node if side == "left" else node + nodes[sibling]
                node = sha256(b"\x01" + pair).digest()
            assert node == nodes[-1]


def _split(nodes: bytes) -> list[bytes]:
    return [nodes[at : at + HASH_BYTES] for at in range(0, len(nodes), HASH_BYTES)]
