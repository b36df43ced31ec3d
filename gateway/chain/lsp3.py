"""
LSP-3: the URL of a profile's name and picture, and the verification of the fetched content.

A VerifiableURI (LSP-2) is a URL with the hash of its content. All functions here are pure.
"""

from typing import NamedTuple

from eth_hash.auto import keccak

PROFILE_KEY = bytes.fromhex("5ef83ad9559033e6e941db7d7c495acdce616347d28e90c7ce47cbfcfcad3bc5")
# keccak256(bytes), and keccak256(utf8) of older profiles; both give a JSON file the same hash.
_METHODS = (bytes.fromhex("8019f9b1"), bytes.fromhex("6f357c6a"))
_IDENTIFIER, _HASH_BYTES = bytes(2), 32


class VerifiableUri(NamedTuple):
    """A URL, and the hash of its content."""

    url: str
    hash: bytes

    def is_of(self, content: bytes) -> bool:
        """Return whether the content has this hash."""
        return keccak(content) == self.hash


def decode_verifiable_uri(value: bytes) -> VerifiableUri | None:
    """Decode a VerifiableURI from a data value; None for any other value, or if its hash cannot be verified."""
    if value.startswith(_IDENTIFIER):
        method, length = value[2:6], int.from_bytes(value[6:8], "big")
        start = 8
    else:  # JSONURL, the form before VerifiableURI.
        method, length, start = value[:4], _HASH_BYTES, 4
    url = value[start + _HASH_BYTES :]
    if method not in _METHODS or length != _HASH_BYTES or not url.isascii():
        return None
    return VerifiableUri(url.decode(), value[start : start + _HASH_BYTES])
