"""Invalid bodies: each error has its pointer, and nothing else happens."""

import json
import secrets
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from gateway.chain.lsp25 import RelayCall
from tests.factories import random_address
from tests.relay.api.conftest import Wallet, execute_body
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.rows import everything

pytestmark = pytest.mark.django_db
QUOTA, STATUS = "/api/relay/quota", "/api/relay/transactionStatus"
LSP15_EXECUTE, LSP15_QUOTA = "/api/lsp15/execute", "/api/lsp15/quota"
MISSING = object()

BYTES = [MISSING, None, "", 5, True, [], {}, "0x", "11" * 65, "0x" + "1" * 129, "0x" + "zz" * 65]
NUMBERS = [
    *("", "soon", " 1", "1_000", "1.0", "1e3", "-1", "0x", "0xg", "0x-1", "1\0", "\u0661", "9" * 5000),
    *(True, False, [], {}, 0.5, 1e300, 2.0**53, -1.0, -1, 2**256, str(2**256), hex(2**256), "0x" + "f" * 65),
]
ADDRESS = random_address()
ADDRESSES = [
    *(MISSING, None, "", 5, True, [], {}, "0x", "0x12", ADDRESS[:-1], ADDRESS[2:], ADDRESS + "00"),
    *(ADDRESS + "\0", ADDRESS + "\n", " " + ADDRESS, "0x" + "g" * 40, "\uff10x" + "a" * 40),
]
# A member of the body, and values that it may not have.
FAULTS: dict[str, list[Any]] = {
    "keyManagerAddress": ADDRESSES,
    "address": ADDRESSES[2:],
    "transaction": [MISSING, None, "", 5, [], "0x", True],
    "transaction/abi": [*BYTES, "0x112233", "0x11223344\0", "0x11223344\n", "0x" + "00" * 32_769],
    "transaction/signature": [*BYTES, {"r": "0x1"}, "0x" + "11" * 63, "0x" + "11" * 69],
    "transaction/nonce": [MISSING, None, *NUMBERS],
    "transaction/validityTimestamps": [*NUMBERS, hex(2 << 128 | 1), hex((2**128 - 1) << 128 | 2**127)],
}


def with_member(body: dict[str, Any], pointer: str, value: Any) -> dict[str, Any]:
    """Return the body with one member changed or missing."""
    *path, name = pointer.split("/")
    changed: dict[str, Any] = json.loads(json.dumps(body))
    place = changed
    for step in path:
        place = place[step]
    if value is MISSING:
        del place[name]
    else:
        place[name] = value
    return changed


def test_each_error_of_execute_has_its_pointer(wallet: Wallet, new_call: Callable[..., RelayCall]) -> None:
    body = execute_body(new_call())
    before = everything()
    for pointer, values in FAULTS.items():
        for value in values:
            response = wallet.post(EXECUTE, with_member(body, pointer, value))
            (fault,) = assert_problem(response, 400, "invalid-request")["errors"]
            assert (fault["pointer"], set(fault)) == (f"/{pointer}", {"pointer", "code", "detail"}), value
    assert everything() == before


def test_all_errors_are_returned_at_once(wallet: Wallet) -> None:
    response = wallet.post(EXECUTE, {"keyManagerAddress": 1, "transaction": {"nonce": 1.5}})
    members = assert_problem(response, 400, "invalid-request")
    assert {fault["pointer"] for fault in members["errors"]} == {
        "/keyManagerAddress",
        "/transaction/abi",
        "/transaction/signature",
        "/transaction/nonce",
    }


QUOTA_FAULTS: dict[str, list[Any]] = {
    "address": ADDRESSES,
    "timestamp": [
        *(MISSING, None, "", "1700000000", 1.7e9 + 0.5, 1.5, True, [], {}),
        *(-1, 2**63, 10**30, 10**4300 - 1, 1 - 10**4300),
    ],
    "signature": [*BYTES, {"r": "0x1"}, "0x" + "11" * 63, "0x" + "11" * 69],
}


@pytest.mark.parametrize("path", [QUOTA, LSP15_QUOTA])
def test_each_error_of_quota_has_its_pointer(wallet: Wallet, path: str) -> None:
    body = {"address": random_address(), "timestamp": 1_700_000_000, "signature": "0x" + "11" * 65}
    for pointer, values in QUOTA_FAULTS.items():
        for value in values:
            response = wallet.post(path, with_member(body, pointer, value))
            (fault,) = assert_problem(response, 400, "invalid-request")["errors"]
            assert fault["pointer"] == f"/{pointer}", value


def test_each_error_of_transaction_status_has_its_pointer(wallet: Wallet) -> None:
    valid = "0x" + secrets.token_hex(32)
    for value in (
        MISSING,
        None,
        "",
        5,
        [],
        valid[:-1],
        valid[2:],
        valid + "00",
        valid[:-1] + "g",
        valid + "\0",
    ):
        response = wallet.post(STATUS, with_member({"transactionHash": valid}, "transactionHash", value))
        members = assert_problem(response, 400, "invalid-request")
        assert [fault["pointer"] for fault in members["errors"]] == ["/transactionHash"]


NO_BODIES: dict[str, str | bytes] = {
    "empty": "",
    "null": "null",
    "a number": "5",
    "a text": '"0x"',
    "a list": "[]",
    "cut off": '{"transaction": {',
    "two values": "{} {}",
    "single quotes": "{'a': 1}",
    "NaN": '{"transaction": {"nonce": NaN}}',
    "Infinity": '{"transaction": {"nonce": -Infinity}}',
    "deep lists": "[" * 100_000,
    "deep objects": '{"transaction":' * 5_000,
    "an integer of 10,000 digits": '{"transaction": {"nonce": ' + "9" * 10_000 + "}}",
    "not UTF-8": b'{"keyManagerAddress": "\xff\xfe"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "a null byte": b'{"keyManagerAddress": \x00}',
    "half a surrogate pair": '{"keyManagerAddress": "\\ud800", "transaction": 1}',
}


def test_the_detail_explains_why_a_body_is_not_read(wallet: Wallet) -> None:
    cases: list[tuple[str | bytes, str]] = [
        ('{"transaction": {"nonce": 1, "nonce": 2}}', 'An object has two members named "nonce".'),
        ('{"NAME": 1, "NAME": 2}'.replace("NAME", "n" * 99), f'two members named "{"n" * 64}"'),
        ("[" * 300, "The body has more than 256 objects and arrays."),
        ('{"nonce": ' + "9" * 5_000 + "}", "A number in the body has too many digits."),
        ('{"nonce": NaN}', "NaN is not JSON."),
        ('{"nonce": -Infinity}', "-Infinity is not JSON."),
        ('{"nonce": 1,}', "The body is not valid JSON."),
        (b"\xff", "The body is not valid JSON."),
    ]
    for body, detail in cases:
        response = wallet.post(EXECUTE, body)
        assert_problem(response, 400, "invalid-request")
        assert detail in response.body["detail"]


def test_the_error_names_the_json_type_that_was_sent_instead_of_an_object(
    wallet: Wallet, new_call: Callable[..., RelayCall]
) -> None:
    kinds = {"null": "null", "5": "a number", '"0x"': "text", "[]": "a list", "true": "true or false"}
    call = execute_body(new_call())
    for body, kind in kinds.items():
        whole = wallet.post(EXECUTE, body).body["errors"]
        member = wallet.post(EXECUTE, {**call, "transaction": json.loads(body)}).body["errors"]
        assert [fault["detail"] for fault in whole + member] == [f"Expected an object, got {kind}."] * 2
        assert [fault["pointer"] for fault in whole + member] == ["", "/transaction"]


def test_the_address_may_be_null_as_if_it_were_left_out(
    wallet: Wallet, new_call: Callable[..., RelayCall]
) -> None:
    assert wallet.post(EXECUTE, {**execute_body(new_call()), "address": None}).status == 200


PATHS = [EXECUTE, QUOTA, STATUS, LSP15_EXECUTE, LSP15_QUOTA]


def test_a_body_that_is_not_an_object_is_refused(wallet: Wallet) -> None:
    for path in PATHS:
        results = {name: wallet.post(path, body) for name, body in NO_BODIES.items()}
        assert {name: response.status for name, response in results.items()} == dict.fromkeys(NO_BODIES, 400)
        for response in results.values():
            assert_problem(response, 400, "invalid-request")


def test_other_methods_are_refused(wallet: Wallet) -> None:
    for path, method in product(PATHS, ("get", "put", "patch", "delete")):
        assert_problem(wallet.send(method, path), 405, "method-not-allowed")


@pytest.mark.parametrize("path", [QUOTA, LSP15_QUOTA])
def test_a_signature_that_is_an_object_is_named(wallet: Wallet, path: str) -> None:
    signature = {"r": "0x" + "11" * 32, "s": "0x" + "11" * 32, "v": 27, "signature": "0x" + "11" * 65}
    body = {"address": random_address(), "timestamp": 1_700_000_000, "signature": signature}
    (fault,) = assert_problem(wallet.post(path, body), 400, "invalid-request")["errors"]
    assert (fault["pointer"], "r, s and v joined" in fault["detail"]) == ("/signature", True)
