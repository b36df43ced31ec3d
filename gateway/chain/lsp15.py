"""LSP-15: the hashes that wallets sign to ask for their quota. The standard left room, so there are several."""

from eth_hash.auto import keccak

from gateway.chain.signatures import personal_sign_digest
from gateway.common.fields import checksum


def quota_digests(*, address: str, timestamp: int) -> list[bytes]:
    """
    Return the digests that may have been signed for this profile and unix second, the most common first.

    1. personal_sign of keccak256(address, timestamp), both packed: LSP-15's documentation;
    2. personal_sign of the text "address:timestamp" with the EIP-55 address: LUKSO's relayer;
    3. the same with the address in lower case;
    4. keccak256(address, timestamp) without any prefix: scripts in the wild.
    """
    checksummed = checksum(address)
    inner = keccak(bytes.fromhex(checksummed[2:]) + timestamp.to_bytes(32, "big"))
    texts = (f"{spelling}:{timestamp}".encode() for spelling in (checksummed, checksummed.lower()))
    return [personal_sign_digest(inner), *map(personal_sign_digest, texts), inner]
