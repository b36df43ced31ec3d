"""Minimal proxies are recognised to the byte."""

import pytest
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from gateway.common.fields import checksum
from signer.contracts import code_hash, implementation_of
from tests.fakes.profiles import random_address

_PROXY = "363d3d373d3d3d363d73{}5af43d82803e903d91602b57fd5bf3"


def _proxy(address: str) -> bytes:
    return bytes.fromhex(_PROXY.format(address[2:].lower()))


def test_a_minimal_proxy_names_its_target() -> None:
    target = random_address()
    assert implementation_of(_proxy(target)) == target


def test_a_target_with_leading_zeros_may_be_pushed_without_them() -> None:
    # The example of EIP-1167: five bytes less to push, the jump five bytes earlier.
    short = bytes.fromhex("363d3d373d3d3d363d6e" + "bb" * 15 + "5af43d82803e903d91602657fd5bf3")
    assert implementation_of(short) == checksum("0x" + "00" * 5 + "bb" * 15)
    assert implementation_of(_proxy("0x" + "00" * 5 + "bb" * 15)) == checksum("0x" + "00" * 5 + "bb" * 15)


@pytest.mark.parametrize(
    "code",
    [
        b"",
        b"\x36",
        bytes.fromhex("363d3d373d3d3d363d6e" + "bb" * 15 + "5af43d82803e903d91602b57fd5bf3"),
        bytes.fromhex("363d3d373d3d3d363d6e00" + "bb" * 14 + "5af43d82803e903d91602657fd5bf3"),
        _proxy(random_address()) + b"\x00",
        b"\x00" + _proxy(random_address()),
        _proxy(random_address()) * 2,
    ],
    ids=["nothing", "a byte", "a jump unmoved", "a zero pushed", "a byte more", "a byte before", "twice"],
)
def test_other_code_names_no_implementation(code: bytes) -> None:
    assert implementation_of(code) is None


@given(st.integers(0, 44), st.integers(1, 255))
def test_one_changed_byte_outside_the_target_names_none(place: int, change: int) -> None:
    code = bytearray(_proxy(random_address()))
    code[place] ^= change
    target = implementation_of(bytes(code))
    assert (target is None) == (not 10 <= place < 30)


def test_the_hash_of_code_is_keccak() -> None:
    code = _proxy(random_address())
    assert code_hash(code) == "0x" + keccak(code).hex()
