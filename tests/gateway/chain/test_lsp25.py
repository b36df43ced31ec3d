"""Relay calls and the hash that a controller signs."""

from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_intended_validator
from eth_hash.auto import keccak
from eth_hash.backends.pycryptodome import backend as pycryptodome
from eth_hash.backends.pysha3 import PySha3Backend
from eth_hash.utils import auto_choose_backend
from hypothesis import given
from hypothesis import strategies as st

from gateway.chain.lsp25 import RelayCall, relay_digest
from gateway.chain.signatures import normalise_signature, recover_address
from gateway.common.fields import checksum
from tests.fakes.profiles import Controller, random_address
from tests.gateway.chain.vectors import VECTORS, octets

_WORDS = st.integers(0, 2**256 - 1)
_ADDRESSES = st.binary(min_size=20, max_size=20).map(lambda raw: checksum("0x" + raw.hex()))


@pytest.mark.parametrize("vector", VECTORS["lsp25"], ids=lambda vector: f"chain {vector['chain_id']}")
def test_the_published_vectors_hold(vector: dict[str, Any]) -> None:
    digest = relay_digest(
        chain_id=vector["chain_id"],
        key_manager=VECTORS["key_manager"],
        relay_nonce=int(vector["nonce"]),
        validity=int(vector["validity_timestamps"], 16),
        payload=octets(VECTORS["payload"]),
        value=vector["value"],
    )
    assert "0x" + digest.hex() == vector["hash"]
    signature = normalise_signature(octets(vector["signature"]), chain_id=vector["chain_id"])
    assert signature == octets(vector["signature"])
    assert recover_address(digest, signature) == VECTORS["controller"]


@given(_ADDRESSES, st.integers(1, 2**64), _WORDS, _WORDS, _WORDS, st.binary(max_size=200))
def test_the_digest_is_eip_191_with_the_key_manager_as_validator(
    key_manager: str, chain_id: int, nonce: int, validity: int, value: int, payload: bytes
) -> None:
    words = b"".join(number.to_bytes(32, "big") for number in (25, chain_id, nonce, validity, value))
    signable = encode_intended_validator(validator_address=key_manager, primitive=words + payload)
    expected = keccak(b"\x19" + signable.version + signable.header + signable.body)
    assert expected == relay_digest(
        chain_id=chain_id,
        key_manager=key_manager,
        relay_nonce=nonce,
        validity=validity,
        payload=payload,
        value=value,
    )


@given(st.binary(min_size=32, max_size=32))
def test_the_signer_of_a_digest_is_recovered(digest: bytes) -> None:
    controller = Controller()
    assert recover_address(digest, controller.sign(digest)) == controller.address
    assert controller.address == Account.from_key(controller.private_key).address


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**128 - 1))
def test_a_relay_nonce_is_a_channel_and_a_place_in_it(channel: int, sequence: int) -> None:
    call = RelayCall(random_address(), b"", b"", channel << 128 | sequence)
    assert (call.channel, call.sequence) == (channel, sequence)


@pytest.mark.parametrize(
    ("validity", "window"),
    [
        (0, (0, None)),
        (int(VECTORS["lsp25"][1]["validity_timestamps"], 16), (0x6591F270, 0x6609EAF0)),
        (0x6591F270 << 128, (0x6591F270, None)),
        (0x6609EAF0, (0, 0x6609EAF0)),
    ],
)
def test_validity_is_a_window_whose_end_may_be_open(validity: int, window: tuple[int, int | None]) -> None:
    call = RelayCall(random_address(), b"", b"", 0, validity)
    assert (call.valid_from, call.valid_until) == window


@given(st.binary(max_size=1_000))
def test_the_hash_is_computed_in_c_and_is_the_one_that_pycryptodome_computes(message: bytes) -> None:
    assert isinstance(auto_choose_backend(), PySha3Backend)
    assert keccak(message) == pycryptodome.keccak256(message)
