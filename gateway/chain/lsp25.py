"""
LSP-25: the relay call that a controller signs, and the hash it must sign.

The hash is EIP-191 version 0x00 with the key manager as the intended validator,
over packed 32-byte words; it is signed directly, never as a personal message.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eth_abi.abi import encode
from eth_hash.auto import keccak

from gateway.chain import mistakes
from gateway.chain.contracts import EXECUTE
from gateway.chain.known import KNOWN
from gateway.chain.mistakes import SignatureMistake
from gateway.chain.signatures import LUKSO_CHAIN_IDS, personal_sign_digest

_VERSION, _OLD_VERSION = 25, 6
# Of a nonce that was sent without its channel, these channels are tried: one recovery each.
_USUAL_CHANNELS = range(1, 17)
_HALF_WORD = 128
_LOW_HALF = (1 << _HALF_WORD) - 1
_VALUE_WORD = slice(4 + 64, 4 + 96)


@dataclass(frozen=True, slots=True)
class RelayCall:
    """
    A signed relay call, as LSP-25 defines it.

    `key_manager` is EIP-55 text. `relay_nonce` has the channel in its upper 128 bits.
    `validity` has the start of the window in its upper half and the end in its lower
    half; 0 means no window.
    """

    key_manager: str
    payload: bytes
    signature: bytes
    relay_nonce: int
    validity: int = 0

    @property
    def channel(self) -> int:
        """The channel of the relay nonce. Calls of different channels are independent."""
        return self.relay_nonce >> _HALF_WORD

    @property
    def sequence(self) -> int:
        """The call's number within the channel; numbers start at 0 and have no gaps."""
        return self.relay_nonce & _LOW_HALF

    @property
    def valid_from(self) -> int:
        """The first unix second at which the chain accepts the call; 0 without a limit."""
        return self.validity >> _HALF_WORD

    @property
    def valid_until(self) -> int | None:
        """The last unix second at which the chain accepts the call; None without a limit."""
        return valid_until_of(self.validity)

    def digest(self, chain_id: int) -> bytes:
        """Return the 32 bytes that a controller signs for this chain."""
        return _digest(self, chain_id)


def valid_until_of(validity: int) -> int | None:
    """Return the last unix second of a validity, which is its lower half; None without a limit."""
    return validity & _LOW_HALF or None


@dataclass(frozen=True, slots=True)
class WrongHash:
    """The digest that a known mistake produces, with the error that explains it."""

    mistake: type[SignatureMistake]
    detail: str
    digest: bytes

    def refusal(self, **members: Any) -> SignatureMistake:
        """Return the error to raise, with `members` added."""
        return self.mistake(self.detail, **members)


def relay_digest(
    *, chain_id: int, key_manager: str, relay_nonce: int, validity: int, payload: bytes, value: int = 0
) -> bytes:
    """Return the 32 bytes that a controller signs; `value` is the wei that the relayer sends with the call."""
    return _validated(key_manager, _words(_VERSION, chain_id, relay_nonce, validity, value) + payload)


def wrong_hashes(*, chain_id: int, call: RelayCall, profile: str) -> list[WrongHash]:
    """
    Return the hashes that known mistakes produce, the most likely first, without duplicates or the correct hash.

    If the signer recovered from one of them is a controller of the profile, the caller has made that mistake. A
    signature over any of these hashes must never be accepted.
    """
    seen = {call.digest(chain_id)}
    hashes = []
    for mistake, digest, numbers in _candidates(chain_id, call, profile):
        if digest not in seen:
            seen.add(digest)
            detail = mistake.advice.format(chain_id=chain_id, nonce=call.relay_nonce, **numbers)
            hashes.append(WrongHash(mistake, detail, digest))
    return hashes


_Candidate = tuple[type[SignatureMistake], bytes, dict[str, int]]


def _candidates(chain_id: int, call: RelayCall, profile: str) -> Iterator[_Candidate]:
    right = call.digest(chain_id)
    message = _words(_VERSION, chain_id, call.relay_nonce, call.validity, 0) + call.payload
    yield mistakes.SignedAsPersonalMessage, personal_sign_digest(right), {}
    yield mistakes.SignedAsHexText, personal_sign_digest(b"0x" + right.hex().encode()), {}
    yield mistakes.SignedInnerMessage, personal_sign_digest(keccak(message)), {}
    yield mistakes.SignedInnerMessage, personal_sign_digest(message), {}
    yield mistakes.SignedForProfile, _validated(profile, message), {}
    for other in (*LUKSO_CHAIN_IDS, *KNOWN):
        yield mistakes.SignedForOtherChain, call.digest(other), {"signed": other}
    yield mistakes.SignedWithoutValidity, _digest(call, chain_id, validity=0), {}
    yield from _old_forms(chain_id, call)
    yield from _other_numbers(chain_id, call)
    yield mistakes.SignedWithoutPrefix, keccak(message), {}
    words = [_VERSION, chain_id, call.relay_nonce, call.validity, 0]
    encoded = encode(["uint256"] * 5 + ["bytes"], [*words, call.payload])
    yield mistakes.SignedAbiEncoded, _validated(call.key_manager, encoded), {}
    yield mistakes.SignedPayloadAlone, keccak(call.payload), {}
    yield mistakes.SignedPayloadAlone, personal_sign_digest(call.payload), {}
    yield mistakes.SignedPayloadAlone, personal_sign_digest(keccak(call.payload)), {}


def _old_forms(chain_id: int, call: RelayCall) -> Iterator[_Candidate]:
    """Yield the hashes of key managers from before LSP-25, newest first."""
    words = _words(_OLD_VERSION, chain_id, call.relay_nonce, call.validity, 0)
    yield mistakes.SignedVersionSix, _validated(call.key_manager, words + call.payload), {}
    words = _words(_OLD_VERSION, chain_id, call.relay_nonce, 0)
    yield mistakes.SignedLegacyVersionSix, _validated(call.key_manager, words + call.payload), {}
    packed = _words(chain_id) + _raw(call.key_manager) + _words(call.relay_nonce) + call.payload
    yield mistakes.SignedLegacyPacked, personal_sign_digest(keccak(packed)), {}


def _other_numbers(chain_id: int, call: RelayCall) -> Iterator[_Candidate]:
    amount = int.from_bytes(call.payload[_VALUE_WORD], "big") if call.payload.startswith(EXECUTE) else 0
    yield mistakes.SignedWithValue, _digest(call, chain_id, value=amount), {"signed": amount}
    for nonce in (call.relay_nonce - 1, call.relay_nonce + 1):
        # Only neighbours in the same channel; a channel's first nonce has none before it.
        if nonce >= 0 and nonce >> _HALF_WORD == call.channel:
            yield mistakes.SignedWithOtherNonce, _digest(call, chain_id, relay_nonce=nonce), {"signed": nonce}
    bare = _digest(call, chain_id, relay_nonce=call.sequence)
    yield mistakes.SignedWithoutChannel, bare, {"signed": call.sequence}
    if call.channel == 0:
        for channel in _USUAL_CHANNELS:
            nonce = channel << _HALF_WORD | call.sequence
            yield mistakes.SentWithoutChannel, _digest(call, chain_id, relay_nonce=nonce), {"signed": nonce}


def _digest(call: RelayCall, chain_id: int, **changed: int) -> bytes:
    fields: dict[str, Any] = {"relay_nonce": call.relay_nonce, "validity": call.validity, **changed}
    return relay_digest(chain_id=chain_id, key_manager=call.key_manager, payload=call.payload, **fields)


def _validated(validator: str, message: bytes) -> bytes:
    return keccak(b"\x19\x00" + _raw(validator) + message)


def _words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


def _raw(address: str) -> bytes:
    return bytes.fromhex(address[2:])
