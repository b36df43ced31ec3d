"""Fair dice whose throws can be repeated: HMAC-SHA256 of a seed, without the bias of a remainder."""

import hashlib
import hmac
from itertools import count

# A throw is the first 8 bytes of an HMAC, read as a big-endian number.
_SPAN = 2**64


def below(*, seed: bytes, message: str, outcomes: int) -> int:
    """
    Return one of 0 … `outcomes` − 1, each as likely as any other, named by `seed` and `message`.

    Numbers from the last, incomplete run of `outcomes` are thrown again, with the
    next counter at the end of the message.

    Raises:
        ValueError: there is nothing to choose from, or more than 2^64.
    """
    if not 1 <= outcomes <= _SPAN:
        raise ValueError("a throw has between 1 and 2^64 outcomes")
    fair = _SPAN - _SPAN % outcomes
    throws = (_throw(seed, f"{message}:{counter}") for counter in count())
    return next(number for number in throws if number < fair) % outcomes


def _throw(seed: bytes, message: str) -> int:
    return int.from_bytes(hmac.digest(seed, message.encode(), "sha256")[:8], "big")


def commitment_of(seed: bytes) -> str:
    """Return the commitment to a seed, which is published before its use: its SHA-256 in hex."""
    return hashlib.sha256(seed).hexdigest()
