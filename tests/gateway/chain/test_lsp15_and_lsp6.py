"""Quota digests and permission bits, as LUKSO's standards write them."""

import pytest

from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission, permissions_key
from gateway.chain.signatures import quota_digests, recover_address
from tests.fakes.profiles import random_address
from tests.gateway.chain.vectors import VECTORS, octets

_DIALECTS = ("A_personal_sign_of_inner", "C_text_checksum", "C_text_lower", "B_raw_inner")


@pytest.mark.parametrize("casing", [str, str.lower, lambda text: "0x" + text[2:].upper()])
def test_the_four_quota_digests_match_the_vectors_in_their_order(casing: type[str]) -> None:
    quota = VECTORS["quota"]
    digests = quota_digests(address=casing(VECTORS["up"]), timestamp=quota["timestamp"])
    assert ["0x" + digest.hex() for digest in digests] == [quota[name]["digest"] for name in _DIALECTS]
    signers = [
        recover_address(digest, octets(quota[name]["signature"]))
        for digest, name in zip(digests, _DIALECTS, strict=True)
    ]
    assert signers == [VECTORS["controller"]] * 4


def test_the_bits_are_those_of_the_standard() -> None:
    assert [bit.value for bit in Permission] == [1 << place for place in range(23)]
    assert (Permission.SIGN, Permission.EXECUTE_RELAY_CALL) == (0x200000, 0x400000)
    left_out = Permission.REENTRANCY | Permission.SUPER_DELEGATECALL | Permission.DELEGATECALL
    assert sum(Permission) - left_out == ALL_PERMISSIONS


def test_the_data_key_ends_in_the_controller() -> None:
    controller = random_address()
    key = permissions_key(controller)
    assert len(key) == 32
    assert key.hex() == "4b80742de2bf82acb3630000" + controller[2:].lower()
