"""Signatures in the spellings that wallets use."""

import secrets

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct
from hypothesis import given
from hypothesis import strategies as st

from gateway.chain.errors import UnrecoverableSignature, UnusableSignature
from gateway.chain.signatures import normalise_signature, personal_sign_digest, recover_address
from tests.fakes.profiles import Controller

_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
# Its v by EIP-155 has four bytes.
_CHAIN_ID = 2**24
_DIGESTS = st.binary(min_size=32, max_size=32)


def _parts(signature: bytes) -> tuple[bytes, int, int]:
    return signature[:32], int.from_bytes(signature[32:64], "big"), signature[64] - 27


@given(_DIGESTS)
def test_every_spelling_of_a_signature_becomes_the_one_the_chain_accepts(digest: bytes) -> None:
    controller = Controller()
    plain = controller.sign(digest)
    r, s, parity = _parts(plain)
    high = (_ORDER - s).to_bytes(32, "big")
    spellings = {
        "as it is": plain,
        "v of 0 or 1": plain[:64] + bytes([parity]),
        "ERC-2098": r + (parity << 255 | s).to_bytes(32, "big"),
        "s in the upper half": r + high + bytes([28 - parity]),
        "both": r + high + bytes([1 - parity]),
        "EIP-155 on chain 42": plain[:64] + bytes([119 + parity]),
        "EIP-155 on chain 4201": plain[:64] + (8437 + parity).to_bytes(2, "big"),
        "EIP-155 on Arbitrum": plain[:64] + (84357 + parity).to_bytes(3, "big"),
        "EIP-155 on this chain": plain[:64] + (2 * _CHAIN_ID + 35 + parity).to_bytes(4, "big"),
    }
    read = {name: normalise_signature(spelling, chain_id=_CHAIN_ID) for name, spelling in spellings.items()}
    assert read == dict.fromkeys(spellings, plain)
    assert recover_address(digest, plain) == controller.address


@pytest.mark.parametrize("length", [0, 1, 63, 69, 130])
def test_a_signature_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(UnusableSignature) as refused:
        normalise_signature(b"\x01" * length, chain_id=_CHAIN_ID)
    assert refused.value.code == "signature-malformed"
    assert str(length) in refused.value.detail


@pytest.mark.parametrize(
    "v", ["02", "1a", "1d", "22", "23", "ff", "001b", "1b1b", "0077", "20f4", "20f7", "010000", "ffffffff"]
)
def test_a_signature_with_another_v_is_refused(v: str) -> None:
    signature = Controller().sign(secrets.token_bytes(32))[:64] + bytes.fromhex(v)
    with pytest.raises(UnusableSignature, match=f"v is {int(v, 16)};") as refused:
        normalise_signature(signature, chain_id=_CHAIN_ID)
    assert refused.value.code == "signature-malformed"


@pytest.mark.parametrize("number", [0, _ORDER, 2**256 - 1])
def test_a_signature_with_numbers_outside_the_curve_is_refused(number: int) -> None:
    r, s, parity = _parts(Controller().sign(secrets.token_bytes(32)))
    word = number.to_bytes(32, "big")
    for forged in (word + s.to_bytes(32, "big"), r + word):
        with pytest.raises(UnusableSignature, match="curve"):
            normalise_signature(forged + bytes([27 + parity]), chain_id=_CHAIN_ID)


def test_a_signature_of_no_key_is_unrecoverable() -> None:
    # No point of the curve has 5 as its x coordinate.
    impossible = (5).to_bytes(32, "big") + (1).to_bytes(32, "big") + b"\x1b"
    with pytest.raises(UnrecoverableSignature) as refused:
        recover_address(secrets.token_bytes(32), normalise_signature(impossible, chain_id=_CHAIN_ID))
    assert refused.value.code == "signature-unrecoverable"


@given(st.binary(max_size=300))
def test_the_personal_sign_digest_equals_the_wallets(message: bytes) -> None:
    account = Account.create()
    signed = account.sign_message(encode_defunct(primitive=message))
    assert bytes(signed.message_hash) == personal_sign_digest(message)
    assert recover_address(personal_sign_digest(message), bytes(signed.signature)) == account.address
