"""
Responses recorded by the Ethereum JSON-RPC specification's tests (CC0), with each member absent, null and unknown.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.chain import node_errors, responses
from gateway.chain.batches import BatchResponse
from gateway.chain.client import JsonRpcChainClient
from gateway.chain.errors import NodeUnavailable
from gateway.chain.rpc import Call, MalformedResponse
from gateway.chain.types import Receipt, SendKind
from tests.fakes.profiles import random_address
from tests.gateway.chain.nodes import running
from tests.gateway.chain.test_client_responses import Script

_FOLDER = Path(__file__).parents[2] / "data" / "execution-apis"
_READERS: dict[str, Callable[[Any], Any]] = {
    "eth_blockNumber": responses.quantity,
    "eth_call": responses.returned_or_error,
    "eth_chainId": responses.quantity,
    "eth_estimateGas": responses.gas_or_error,
    "eth_feeHistory": responses.market_tip,
    "eth_getBalance": responses.wei,
    "eth_getBlockByNumber": responses.block_id,
    "eth_getCode": responses.octets,
    "eth_getTransactionCount": responses.quantity,
    "eth_getTransactionReceipt": responses.receipt,
    "eth_sendRawTransaction": node_errors.send_outcome,
    "eth_simulateV1": responses.simulated,
}
# The members without which a response cannot be used. A list of no blocks is null in geth's fee history.
_NEEDED = {
    "eth_getBlockByNumber": {"number", "timestamp", "baseFeePerGas", "hash"},
    "eth_getTransactionReceipt": {
        "transactionHash",
        "blockNumber",
        "blockHash",
        "status",
        "gasUsed",
        "effectiveGasPrice",
    },
    "eth_feeHistory": {"gasUsedRatio"},
}


def _exchanges() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for file in sorted(_FOLDER.glob("*/*.io")):
        for line in file.read_text().splitlines():
            if line.startswith("<<"):
                yield f"{file.parent.name}/{file.stem}", file.parent.name, json.loads(line[2:])


_ALL = list(_exchanges())
_OBJECTS = [
    (method, answer["result"]) for _, method, answer in _ALL if method in _NEEDED and answer.get("result")
]


def _read(method: str, answer: dict[str, Any], read: Callable[[Any], Any] | None = None) -> Any:
    call = Call(method, [], read or _READERS[method], accepts=node_errors.is_call_error, max_bytes=2**20)
    response = BatchResponse([call])
    response.take(json.dumps([{**answer, "id": 1}]).encode())
    (value,) = response.values()
    return value


def _reader(method: str) -> Callable[[Any], Any]:
    return responses.head if method == "eth_getBlockByNumber" else _READERS[method]


def test_every_recorded_response_is_parsed() -> None:
    for name, method, result in _ALL:
        if method not in _READERS:
            continue
        value = _read(method, result)
        assert not isinstance(value, Exception), name
        if method == "eth_getTransactionReceipt" and result["result"]:
            assert isinstance(value, Receipt), name
            assert value.gas_used == int(result["result"]["gasUsed"], 16)
        if method == "eth_sendRawTransaction":
            assert value.kind is SendKind.ACCEPTED, name


@pytest.mark.parametrize("change", ["absent", "null", "unknown"])
def test_only_the_members_that_are_used_are_needed(change: str) -> None:
    assert {method for method, _ in _OBJECTS} == set(_NEEDED)
    for method, result in _OBJECTS:
        _needs_only_what_is_used(method, result, change)


def _needs_only_what_is_used(method: str, result: dict[str, Any], change: str) -> None:
    whole = _read(method, {"result": result}, _reader(method))
    assert not isinstance(whole, Exception)
    assert _NEEDED[method] <= set(result)
    for name in result:
        others = {other: value for other, value in result.items() if other != name}
        changed = {
            "absent": others,
            "null": others | {name: None},
            "unknown": result | {f"{name}Unknown": {"a": [1]}},
        }[change]
        value = _read(method, {"result": changed}, _reader(method))
        if name == "gasLimit" and change != "unknown":
            # A node may leave it out: then the service's own limit is the only one.
            assert value == replace(whole, gas_limit=0)
        elif change == "unknown" or name not in _NEEDED[method]:
            # Without the fees that blocks paid there is no market.
            assert value == whole or (method == "eth_feeHistory" and value == 0), name
        elif method != "eth_feeHistory" or change == "absent":
            assert isinstance(value, MalformedResponse)
            assert name in str(value)


@pytest.mark.parametrize("name", ["calls", "status", "gasUsed", "returnData", "logs", "number"])
@pytest.mark.parametrize("change", ["absent", "null", "unknown"])
def test_a_simulation_needs_its_status_and_gas_and_a_reverted_one_its_data(name: str, change: str) -> None:
    results = [result for _, method, result in _ALL if method == "eth_simulateV1"]
    assert {result["result"][0]["calls"][0]["status"] for result in results} == {"0x0", "0x1"}
    for result in results:
        _needs_of_a_simulation(json.loads(json.dumps(result)), name, change)


def _needs_of_a_simulation(answer: dict[str, Any], name: str, change: str) -> None:
    (block,) = answer["result"]
    target = block["calls"][0] if name in block["calls"][0] else block
    failed = block["calls"][0]["status"] == "0x0"
    if change == "absent":
        del target[name]
    else:
        target[name if change == "null" else f"{name}Unknown"] = None if change == "null" else [{}]
    value = _read("eth_simulateV1", answer)
    is_needed = name in {"calls", "status", "gasUsed"} or (name == "returnData" and failed)
    assert isinstance(value, MalformedResponse) == (is_needed and change != "unknown")


def _results(method: str) -> Any:
    return next(result["result"] for _, one, result in _ALL if one == method)


@pytest.mark.parametrize("change", ["whole", "absent", "null", "unknown"])
def test_logs_and_transactions_are_read_or_their_node_is_at_fault(change: str) -> None:
    script = Script()
    with running(script) as node:
        client = JsonRpcChainClient([node.url], timeout_seconds=60)
        for method, row in (
            ("eth_getLogs", _results("eth_getLogs")[0]),
            ("eth_getTransactionByHash", _results("eth_getTransactionByHash")),
        ):
            for name in row:
                others = {other: value for other, value in row.items() if other != name}
                changed = {
                    "whole": row,
                    "absent": others,
                    "null": others | {name: None},
                    "unknown": row | {f"{name}Unknown": {"a": [1]}},
                }[change]
                script.responses["eth_getLogs"] = [
                    changed if method == "eth_getLogs" else _results("eth_getLogs")[0]
                ]
                script.responses["eth_getTransactionByHash"] = (
                    changed if method == "eth_getTransactionByHash" else _results("eth_getTransactionByHash")
                )
                try:
                    found = client.read_external_executions(
                        key_manager=random_address(), controller=random_address(), from_block=1, to_block=2
                    )
                except NodeUnavailable:
                    assert change in {"absent", "null"}, name
                else:
                    # None of the recorded logs is of a key manager.
                    assert found == [], name
