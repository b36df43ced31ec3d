"""
ECDSA signatures over secp256k1 as wallets write them, their signers, and the digests that wallets sign.

OpenZeppelin's ECDSA library, which key managers use, accepts only 65 bytes with v of 27
or 28 and s in the lower half. Other forms that wallets use are converted here.
"""

from coincurve import PublicKey
from eth_hash.auto import keccak

from gateway.chain.errors import UnrecoverableSignature, UnusableSignature
from gateway.chain.known import KNOWN
from gateway.common.fields import checksum

_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_HALF_ORDER = _ORDER // 2
_Y_PARITY = {0: 0, 1: 1, 27: 0, 28: 1}
# LUKSO's mainnet, its testnet, and the first testnet, whose id is still in old examples.
LUKSO_CHAIN_IDS = (42, 4201, 2828)
# The v of EIP-155 is 35 or 36 plus twice the chain id. It has two bytes or more if the chain id is above 110.
_EIP155 = 35
_COMPACT_BYTES, _FULL_BYTES, MOST_BYTES = 64, 65, 68


def normalise_signature(signature: bytes, *, chain_id: int) -> bytes:
    """
    Return the 65 bytes r, s, v of a signature as the chain accepts them: v of 27 or 28, s in the lower half.

    Also converts v of 0 or 1, the 64 bytes of ERC-2098, s in the upper half, and the v of EIP-155 for this chain or one
    to which a wallet may be set. The chain in v does not matter, because the signed hash contains the chain id.

    Raises:
        UnusableSignature: the length, v, r or s fits no known form.
    """
    r, s, parity = _split(signature, chain_id)
    if not (0 < r < _ORDER and 0 < s < _ORDER):
        raise UnusableSignature("The numbers r and s of the signature lie outside the curve's order.")
    if s > _HALF_ORDER:
        s, parity = _ORDER - s, 1 - parity
    return r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([27 + parity])


def recover_address(digest: bytes, signature: bytes) -> str:
    """
    Return the EIP-55 address whose key signed the 32-byte digest; `signature` must be normalised.

    Raises:
        UnrecoverableSignature: no key can have made this signature over this digest.
    """
    try:
        recoverable = signature[:64] + bytes([signature[64] - 27])
        key = PublicKey.from_signature_and_message(recoverable, digest, hasher=None)
    except (ValueError, IndexError) as error:
        # coincurve raises ValueError; a signature that is too short causes IndexError.
        raise UnrecoverableSignature("No key can have made this signature over this message.") from error
    return checksum("0x" + keccak(key.format(compressed=False)[1:])[12:].hex())


def recover_signers(signature: bytes, *digests: bytes, chain_id: int) -> tuple[bytes, list[str]]:
    """
    Return the normalised signature, and for each 32-byte digest the EIP-55 address of its signer.

    Raises:
        UnusableSignature: see `normalise_signature` and `recover_address`.
    """
    normalised = normalise_signature(signature, chain_id=chain_id)
    return normalised, [recover_address(digest, normalised) for digest in digests]


def personal_sign_digest(message: bytes) -> bytes:
    """Return the hash that `personal_sign` signs for these bytes (EIP-191 version 0x45)."""
    return keccak(b"\x19Ethereum Signed Message:\n%d" % len(message) + message)


def quota_digests(*, address: str, timestamp: int) -> list[bytes]:
    """
    Return the digests that a wallet may have signed to request a quota at this unix second, the most common first.

    LSP-15 does not define the form, so there are several:

    1. personal_sign of keccak256(address, timestamp), both packed: LSP-15's documentation;
    2. personal_sign of the text "address:timestamp" with the EIP-55 address: LUKSO's relayer;
    3. the same with the address in lower case;
    4. keccak256(address, timestamp) without any prefix: scripts in use.
    """
    checksummed = checksum(address)
    inner = keccak(bytes.fromhex(checksummed[2:]) + timestamp.to_bytes(32, "big"))
    texts = (f"{spelling}:{timestamp}".encode() for spelling in (checksummed, checksummed.lower()))
    return [personal_sign_digest(inner), *map(personal_sign_digest, texts), inner]


def _split(signature: bytes, chain_id: int) -> tuple[int, int, int]:
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    if len(signature) == _COMPACT_BYTES:
        return r, s & (2**255 - 1), s >> 255
    if not _FULL_BYTES <= len(signature) <= MOST_BYTES:
        raise UnusableSignature(
            f"A signature has 65 bytes, or 64 in ERC-2098 form; this one has {len(signature)}."
        )
    v, is_long = int.from_bytes(signature[64:], "big"), len(signature) > _FULL_BYTES
    if v in _Y_PARITY and not is_long:
        return r, s, _Y_PARITY[v]
    signed_chain, parity = divmod(v - _EIP155, 2)
    if signed_chain not in {chain_id, *LUKSO_CHAIN_IDS, *KNOWN} or (
        is_long and not signature[_COMPACT_BYTES]
    ):
        raise UnusableSignature(
            f"The signature's v is {v}; it must be 27 or 28 (or 0 or 1, or {2 * chain_id + _EIP155} or "
            f"{2 * chain_id + _EIP155 + 1} by EIP-155)."
        )
    return r, s, parity
