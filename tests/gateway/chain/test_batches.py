"""Responses of a node are read within limits of size and depth, each for the call that it belongs to."""

import json
import random
import re
import secrets
from typing import Any

import pytest

from gateway.chain import responses
from gateway.chain.batches import BatchResponse, oversized_by_contract, request_body
from gateway.chain.rpc import (
    BatchRefused,
    Call,
    ErrorResponse,
    MalformedResponse,
    NodeFault,
    OversizedError,
    RpcError,
    TooLarge,
)

_MEGABYTE = 2**20


def _calls(count: int = 3, **fields: Any) -> list[Call]:
    return [Call("eth_call", [secrets.token_hex(4)], **fields) for _ in range(count)]


def _read(calls: list[Call], body: bytes, *, piece: int = 65_536) -> list[Any]:
    response = BatchResponse(calls)
    for at in range(0, len(body), piece):
        response.take(body[at : at + piece])
    return response.values()


def _body(*results: Any) -> bytes:
    return json.dumps(
        [{"jsonrpc": "2.0", "id": number, "result": one} for number, one in enumerate(results, start=1)]
    ).encode()


def test_responses_are_matched_to_calls_by_id_in_any_order_and_in_any_chunks() -> None:
    calls = _calls(20)
    wanted = [secrets.token_hex(random.randrange(1, 20_000)) for _ in calls]
    answered = [{"id": number, "result": result} for number, result in enumerate(wanted, start=1)]
    random.shuffle(answered)
    body = json.dumps(answered, indent=random.choice([None, 2])).encode()
    assert _read(calls, body, piece=random.randrange(1, 5_000)) == wanted


def test_the_ids_count_from_one_because_some_providers_drop_a_zero() -> None:
    assert [one["id"] for one in json.loads(request_body(_calls()))] == [1, 2, 3]


def test_an_oversized_response_of_a_contract_fails_only_its_own_call() -> None:
    calls = _calls(max_bytes=1_000, is_sized_by_contract=True)
    first, large, last = _read(calls, _body("0x1", "0x" + "ab" * 1_000, "0x2"))
    assert (first, last) == ("0x1", "0x2")
    assert isinstance(large, TooLarge)
    assert large.place == 1


def test_an_oversized_response_of_a_contract_is_an_error_of_the_call() -> None:
    (call,) = _calls(1, is_sized_by_contract=True)
    assert oversized_by_contract(call) == OversizedError()


def test_an_oversized_response_that_no_contract_can_cause_is_a_node_fault() -> None:
    values = _read(_calls(max_bytes=1_000), _body("0x1", "0x" + "ab" * 1_000, "0x2"))
    assert isinstance(values[1], MalformedResponse)
    assert str(values[1]) == "eth_call: the response is larger than 1000 bytes"


@pytest.mark.parametrize("is_id_first", [True, False])
def test_reading_stops_at_an_oversized_response_and_names_its_call(is_id_first: bool) -> None:
    calls = _calls(max_bytes=100_000, is_sized_by_contract=True)
    big = {"id": 2, "result": "0x" + "ab" * 5 * _MEGABYTE}
    big = big if is_id_first else {"result": big["result"], "id": 2}
    body = json.dumps([{"id": 1, "result": "0x1"}, big, {"id": 3, "result": "0x2"}]).encode()
    response, taken = BatchResponse(calls), 0
    with pytest.raises(TooLarge) as refused:  # noqa: PT012 - the loop ends by it
        for at in range(0, len(body), 65_536):
            response.take(body[at : at + 65_536])
            taken += 65_536
    assert refused.value.place == 1
    assert taken < _MEGABYTE


def test_responses_that_are_oversized_only_in_sum_blame_no_call() -> None:
    calls = _calls(12, max_bytes=_MEGABYTE)
    with pytest.raises(TooLarge) as refused:
        _read(calls, _body(*("ab" * (_MEGABYTE // 2 - 100) for _ in calls)))
    assert refused.value.place is None


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'[{"id":1,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
        b"<html>",
        b"<html>" * 100_000,
        b"",
        b" " * 1_000,
        b"\xff\xfe",
        b'[{"id":1,"result":NaN},{"id":2,"result":1},{"id":3,"result":1}]',
        b'[{"id":1,"result":' + b"1" * 50_000 + b"}]",
        _body(1, 2, 3)[:-1],
        _body(1, 2, 3)[:-20],
        _body(1, 2, 3) + b"x",
        _body(1, 2, 3) + _body(1, 2, 3),
        _body(1, 2, 3, 4),
        b"[1, 2, 3]",
        b'[{"result": 1}]',
        *(
            b'[{"id": %s, "result": 1}]' % one
            for one in (b"[1]", b"{}", b"true", b"0.0", b'"0"', b"-1", b"0", b"4", b"null")
        ),
        b'[{"id":1,"result":1},{"id":1,"result":1},{"id":2,"result":1},{"id":3,"result":1}]',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_anything_but_the_response_to_the_batch_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedResponse):
        _read(_calls(), body)


def test_lists_in_lists_of_many_megabytes_are_not_read_to_the_end() -> None:
    response, taken = BatchResponse(_calls()), 0
    with pytest.raises(NodeFault):  # noqa: PT012 - the loop ends by it
        while True:
            response.take(b"[" * (not taken) + b"[]," * 20_000)
            taken += 60_000
    assert taken < _MEGABYTE


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        (b'[{"id":1,"error":{"code":-32600,"message":"batch limit 2 exceeded"}}]', 2),
        (b'[{"id":null,"error":{"code":-32600,"message":"batch limit 2 exceeded: 3 requested"}}]', 2),
        (b'{"id":null,"error":{"code":-32600,"message":"maximum batch size is 2"}}', 2),
        (b'{"id":null,"error":{"code":-32600,"message":"batch too large"}}', None),
        (b"[]", None),
        (_body(1, 2), None),
        (b"{}", None),
        (b"7", None),
    ],
)
def test_an_incomplete_batch_response_is_a_refusal_or_a_rate_limit(body: bytes, limit: int | None) -> None:
    with pytest.raises(BatchRefused) as refused:
        _read(_calls(), body)
    assert refused.value.limit == limit


@pytest.mark.parametrize(
    "message",
    [
        "daily request count exceeded, request rate limited",
        "Your app has exceeded its compute units per second capacity. If you have retries enabled, ignore this.",
        "Too many requests, reason: call rate limit exhausted, retry in 10s",
        "project ID request rate exceeded",
        "monthly quota reached",
    ],
)
def test_a_rate_limit_in_place_of_a_batch_is_no_limit_of_its_size(message: str) -> None:
    fields = {"code": -32005, "message": message}
    for body in ({"id": None, "error": fields}, {"error": fields}, [{"id": 1, "error": fields}]):
        with pytest.raises(ErrorResponse, match=re.escape(message[:30])):
            _read(_calls(), json.dumps(body).encode())


def test_an_error_is_a_result_only_for_calls_that_allow_it() -> None:
    body = json.dumps(
        [
            {"id": number, "error": {"code": 3, "message": "reverted" * 1_000, "data": "0x01"}}
            for number in (1, 2)
        ]
    ).encode()
    accepting, refusing = _calls(1, accepts=lambda error: error.code == 3) + _calls(1)
    value, fault = _read([accepting, refusing], body)
    assert value == RpcError(3, ("reverted" * 1_000)[:1_000], "0x01")
    assert isinstance(fault, ErrorResponse)
    assert str(fault) == "eth_call: JSON-RPC error 3"


@pytest.mark.parametrize(
    "fields", ["nope", [], {}, {"code": None}, {"code": "3"}, {"code": True}, {"code": 1.5}]
)
def test_an_error_without_a_code_is_malformed(fields: Any) -> None:
    (value,) = _read(_calls(1), json.dumps([{"id": 1, "error": fields}]).encode())
    assert isinstance(value, MalformedResponse)


@pytest.mark.parametrize("error", [RuntimeError, KeyError, RecursionError, MemoryError, ZeroDivisionError])
def test_any_error_while_parsing_a_response_is_the_result_of_its_call(error: type[Exception]) -> None:
    def read(answer: Any) -> Any:
        if answer == "0x2":
            raise error
        return answer

    values = _read(_calls(read=read), _body("0x1", "0x2", "0x3"))
    assert values[::2] == ["0x1", "0x3"]
    assert str(values[1]) == f"eth_call: unreadable ({error.__name__})"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        "7",
        7,
        None,
        True,
        [],
        {},
        "-0x5",
        "0x-5",
        " 0x5",
        "0x5 ",
        "0x_5",
        "0xg",
        "0x" + "f" * 16,
        "0x" + "1" * 65,
        "٠x1",
    ],
)
def test_a_quantity_is_hexadecimal_positive_and_fits(text: Any) -> None:
    with pytest.raises(MalformedResponse):
        responses.quantity(text)
    assert responses.quantity(hex(2**63 - 1)) == 2**63 - 1


def test_a_fault_names_the_method_and_the_member() -> None:
    block = {"number": "0x1", "timestamp": "0x1", "hash": "0x" + "00" * 32}
    (fault,) = _read([Call("eth_getBlockByNumber", [], responses.head)], _body(block))
    assert str(fault) == "eth_getBlockByNumber: member baseFeePerGas is missing"
