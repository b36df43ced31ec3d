"""
LSP-3: where a profile says its name and picture, and whether what lies there is what the profile meant.

A VerifiableURI (LSP-2) is an address with the hash of what must be found at it. Pure functions of bytes.
"""

from typing import NamedTuple

from eth_hash.auto import keccak

PROFILE_KEY = bytes.fromhex("5ef83ad9559033e6e941db7d7c495acdce616347d28e90c7ce47cbfcfcad3bc5")
# keccak256(bytes), by which a hash is given; older profiles mean its UTF-8 text, which is the same for JSON files.
_METHODS = (bytes.fromhex("8019f9b1"), bytes.fromhex("6f357c6a"))
_IDENTIFIER, _HASH_BYTES = bytes(2), 32


class VerifiableUri(NamedTuple):
    """An address, and the hash of what it leads to."""

    url: str
    hash: bytes

    def is_of(self, content: bytes) -> bool:
        """Return whether this is what was meant."""
        return keccak(content) == self.hash


def decode_verifiable_uri(value: bytes) -> VerifiableUri | None:
    """Return what a data value says; None where it is no VerifiableURI, or has no hash that could be verified."""
    if value.startswith(_IDENTIFIER):
        method, length = value[2:6], int.from_bytes(value[6:8], "big")
        start = 8
    else:  # The form before LSP-2 had one of its own: JSONURL.
        method, length, start = value[:4], _HASH_BYTES, 4
    url = value[start + _HASH_BYTES :]
    if method not in _METHODS or length != _HASH_BYTES or not url.isascii():
        return None
    return VerifiableUri(url.decode(), value[start : start + _HASH_BYTES])
