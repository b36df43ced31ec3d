"""Selectors, calldata, and the refusals behind revert data."""

import json
import secrets
from typing import Any

import pytest
from eth_typing import HexStr
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st
from web3 import Web3
from web3.contract import Contract

from devstack.toolchain import artifact, install_toolchain
from gateway.chain import contracts
from gateway.chain.contracts import decode_execute_relay_call, encode_execute_relay_call, refusal_from_revert
from tests.fakes.lukso import custom_error
from tests.fakes.profiles import random_address

_CONTROLLER, _TARGET = random_address(), random_address()
_WORDS = st.integers(0, 2**256 - 1)


@pytest.fixture(scope="module")
def abi() -> list[dict[str, Any]]:
    """Return the compiler's output for LUKSO's key manager and profile."""
    install_toolchain()
    return [*artifact("LSP6KeyManagerInit")["abi"], *artifact("UniversalProfileInit")["abi"]]


def _signatures(abi: list[dict[str, Any]], kind: str) -> dict[bytes, str]:
    items = (item for item in abi if item["type"] == kind)
    texts = (f"{item['name']}({','.join(each['type'] for each in item['inputs'])})" for item in items)
    return {keccak(text=text)[:4]: text for text in texts}


def test_every_selector_is_a_function_of_the_real_contracts(abi: list[dict[str, Any]]) -> None:
    functions = _signatures(abi, "function")
    assert {name: functions[getattr(contracts, name)].split("(")[0] for name in _FUNCTIONS} == _FUNCTIONS


_FUNCTIONS = {
    "EXECUTE_RELAY_CALL": "executeRelayCall",
    "GET_DATA": "getData",
    "GET_NONCE": "getNonce",
    "IS_VALID_SIGNATURE": "isValidSignature",
    "LSP20_VERIFY_CALL": "lsp20VerifyCall",
    "OWNER": "owner",
    "TARGET": "target",
}


def test_the_topic_is_that_of_permissions_verified() -> None:
    topic = keccak(text="PermissionsVerified(address,uint256,bytes4)")
    assert "0x" + topic.hex() == contracts.PERMISSIONS_VERIFIED_TOPIC


def test_every_refusal_of_the_table_is_an_error_of_the_real_contracts(abi: list[dict[str, Any]]) -> None:
    real = _signatures(abi, "error")
    assert len(contracts.CONTRACT_ERRORS) == 14
    for selector, error in contracts.CONTRACT_ERRORS.items():
        assert real[selector].split("(")[1] == ",".join(error.types) + ")"
    for selector, name in contracts.PROFILE_ERRORS.items():
        assert real[selector].split("(")[0] == name


@given(st.binary(max_size=70), _WORDS, _WORDS, st.binary(max_size=300))
def test_encoded_calldata_decodes_to_the_same_values(
    signature: bytes, nonce: int, validity: int, payload: bytes
) -> None:
    calldata = encode_execute_relay_call(signature=signature, nonce=nonce, validity=validity, payload=payload)
    assert decode_execute_relay_call(calldata) == (signature, nonce, validity, payload)


@pytest.fixture(scope="module")
def contract(abi: list[dict[str, Any]]) -> type[Contract]:
    """Return web3.py's key manager, made of the compiler's ABI."""
    key_manager = abi[: len(artifact("LSP6KeyManagerInit")["abi"])]
    return Web3().eth.contract(abi=json.loads(json.dumps(key_manager)))


@given(st.binary(max_size=70), _WORDS, _WORDS, st.binary(max_size=300))
def test_a_relay_call_is_encoded_and_decoded_as_by_web3(
    contract: type[Contract], signature: bytes, nonce: int, validity: int, payload: bytes
) -> None:
    calldata = encode_execute_relay_call(signature=signature, nonce=nonce, validity=validity, payload=payload)
    expected = contract.encode_abi("executeRelayCall", [signature, nonce, validity, payload])
    assert "0x" + calldata.hex() == expected
    _, arguments = contract.decode_function_input(HexStr(expected))
    assert decode_execute_relay_call(calldata) == tuple(arguments.values())


@given(st.integers(0, 2**128 - 1), st.binary(max_size=300))
def test_reads_of_a_key_manager_are_encoded_as_by_web3(
    contract: type[Contract], channel: int, payload: bytes
) -> None:
    profile, controller = random_address(), random_address()
    get_nonce = contracts.encode_get_nonce(controller=controller, channel=channel)
    assert "0x" + get_nonce.hex() == contract.encode_abi("getNonce", [controller, channel])
    verify_call = contracts.encode_lsp20_verify_call(profile=profile, controller=controller, payload=payload)
    assert "0x" + verify_call.hex() == contract.encode_abi(
        "lsp20VerifyCall", [profile, profile, controller, 0, payload]
    )
    digest = secrets.token_bytes(32)
    is_valid = contracts.encode_is_valid_signature(digest=digest, signature=payload)
    assert "0x" + is_valid.hex() == contract.encode_abi("isValidSignature", [digest, payload])


def test_the_abi_is_that_of_the_real_contracts(abi: list[dict[str, Any]]) -> None:
    real = {(item["type"], item.get("name")): item for item in abi}
    declared: list[dict[str, Any]] = json.loads(json.dumps(contracts.CONTRACT_ABI))
    for item in declared:
        expected = real[(item["type"], item["name"])]
        for side in ("inputs", "outputs") if item["type"] == "function" else ("inputs",):
            assert [(each["type"], each.get("indexed")) for each in item[side]] == [
                (each["type"], each.get("indexed")) for each in expected[side]
            ]


@pytest.mark.parametrize("calldata", [b"", b"\x4c\x8a\x4e", secrets.token_bytes(200)])
def test_other_calldata_is_not_a_relay_call(calldata: bytes) -> None:
    assert decode_execute_relay_call(calldata) is None


@given(st.binary(max_size=200))
def test_a_broken_relay_call_is_none_and_no_crash(rest: bytes) -> None:
    assert decode_execute_relay_call(contracts.EXECUTE_RELAY_CALL + rest[:120]) is None or len(rest) >= 120


@pytest.mark.parametrize(
    ("signature", "arguments", "code", "members"),
    [
        (
            "InvalidRelayNonce(address,uint256,bytes)",
            (_CONTROLLER, 2**200, b"s"),
            "relay-nonce-refused",
            {"controller": _CONTROLLER, "nonce": str(2**200)},
        ),
        (
            "NoPermissionsSet(address)",
            (_CONTROLLER,),
            "controller-without-permissions",
            {"controller": _CONTROLLER},
        ),
        (
            "NotAuthorised(address,string)",
            (_CONTROLLER, "SETDATA"),
            "not-authorised",
            {"controller": _CONTROLLER, "permission": "SETDATA"},
        ),
        (
            "NotAllowedCall(address,address,bytes4)",
            (_CONTROLLER, _TARGET, b"abcd"),
            "call-not-allowed",
            {"controller": _CONTROLLER, "target": _TARGET, "selector": "0x61626364"},
        ),
        ("NoCallsAllowed(address)", (_CONTROLLER,), "no-calls-allowed", {"controller": _CONTROLLER}),
        (
            "NotAllowedERC725YDataKey(address,bytes32)",
            (_CONTROLLER, b"\x01" * 32),
            "data-key-not-allowed",
            {"controller": _CONTROLLER, "dataKey": "0x" + "01" * 32},
        ),
        (
            "NoERC725YDataKeysAllowed(address)",
            (_CONTROLLER,),
            "no-data-keys-allowed",
            {"controller": _CONTROLLER},
        ),
        ("RelayCallBeforeStartTime()", (), "relay-call-not-yet-valid", {}),
        ("RelayCallExpired()", (), "relay-call-expired", {}),
        (
            "InvalidERC725Function(bytes4)",
            (b"abcd",),
            "payload-function-not-supported",
            {"selector": "0x61626364"},
        ),
        ("InvalidPayload(bytes)", (b"a",), "payload-malformed", {}),
        ("CallingKeyManagerNotAllowed()", (), "key-manager-call-not-allowed", {}),
        ("DelegateCallDisallowedViaKeyManager()", (), "delegate-call-not-allowed", {}),
        (
            "ERC725X_InsufficientBalance(uint256,uint256)",
            (1, 2**60),
            "profile-balance-too-low",
            {"balanceWei": "1", "requiredWei": str(2**60)},
        ),
    ],
)
def test_each_contract_error_is_a_refusal_of_its_own(
    signature: str, arguments: tuple[Any, ...], code: str, members: dict[str, str]
) -> None:
    refusal = refusal_from_revert(custom_error(signature, *arguments))
    assert (refusal.code, refusal.status, refusal.members) == (code, 422, members)
    assert refusal.detail.endswith(".")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            custom_error("Error(string)", "Ownable: caller is not the owner"),
            "Ownable: caller is not the owner",
        ),
        (custom_error("Panic(uint256)", 0x11), "arithmetic overflow"),
        (custom_error("Panic(uint256)", 0x99), "panic 0x99"),
        (custom_error("LSP7AmountExceedsBalance(uint256,address,uint256)", 1, _TARGET, 2), None),
        (b"", None),
        (b"\x01", None),
    ],
)
def test_a_target_that_reverts_is_quoted(data: bytes, reason: str | None) -> None:
    refusal = refusal_from_revert(data)
    assert (refusal.code, refusal.status) == ("target-reverted", 422)
    assert refusal.members == {"reason": reason, "revertData": "0x" + data.hex()}
    if reason:
        assert reason in refusal.detail


def test_an_error_of_the_profile_itself_is_named() -> None:
    refusal = refusal_from_revert(custom_error("ERC725X_UnknownOperationType(uint256)", 9))
    assert refusal.code == "profile-refused"
    assert refusal.members["reason"] == "ERC725X_UnknownOperationType"


def test_foreign_text_is_cut_and_cleaned() -> None:
    data = custom_error("Error(string)", "<b>\x00\x1b[31m\n" + "x" * 5_000)
    refusal = refusal_from_revert(data)
    reason = refusal.members["reason"]
    assert reason.isprintable()
    assert len(reason) == 256
    assert len(refusal.members["revertData"]) == 2 + 2 * 260


@given(
    st.binary(max_size=120),
    st.sampled_from([*contracts.CONTRACT_ERRORS, bytes.fromhex("08c379a0"), bytes.fromhex("4e487b71")]),
)
def test_nonsense_behind_a_known_selector_is_a_refusal_and_no_crash(body: bytes, selector: bytes) -> None:
    assert refusal_from_revert(selector + body).status == 422
