"""The call that deployed a profile, found by the factory's event at nodes with and without limits."""

import random
import secrets
from collections.abc import Sequence
from typing import Any

import pytest
from eth_abi.abi import encode

from gateway.chain import first_deployments
from gateway.chain.rpc import Call, MalformedResponse, RpcError
from signer.deployments import KEY_MANAGER, MODULE, PRIMARY, PROFILE, SECONDARY, Deployment
from tests.factories import random_address

DEPLOYMENT = Deployment(secrets.token_bytes(32), PROFILE, KEY_MANAGER, MODULE, secrets.token_bytes(300))
_EVENT = encode(
    [PRIMARY, SECONDARY, "address", "bytes"],
    [
        (DEPLOYMENT.salt, 7, PROFILE, b"start"),
        (0, KEY_MANAGER, b"start", True, b""),
        MODULE,
        DEPLOYMENT.module_data,
    ],
)


class Chain:
    """A chain whose node refuses events of more than `most` blocks, and keeps the states since a block."""

    def __init__(self, *, most: int, keeps_since: int = 0, event: bytes = _EVENT) -> None:
        self.head = random.randrange(10**5, 10**8)
        self.deployed_at = random.randrange(1, self.head + 1)
        self.most, self.keeps_since, self.event = most, keeps_since, event
        self.requests = 0

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        self.requests += 1
        values = [self._answer(call) for call in calls]
        assert all(
            call.accepts(value)
            for call, value in zip(calls, values, strict=True)
            if isinstance(value, RpcError)
        )
        return [call.read(value) for call, value in zip(calls, values, strict=True)]

    def _answer(self, call: Call) -> Any:
        if call.method == "eth_getCode":
            block = int(call.params[1], 16)
            if block < self.keeps_since:
                return RpcError(-32000, "missing trie node")
            return "0x60" if block >= self.deployed_at else "0x"
        (wanted,) = call.params
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        if last - first >= self.most:
            return RpcError(-32005, "query exceeds max block range")
        return [{"data": "0x" + self.event.hex()}] if first <= self.deployed_at <= last else []

    def find(self) -> Deployment | None:
        return first_deployments.find(self.batch, profile=random_address(), head=self.head)


def test_a_node_without_limits_is_asked_once() -> None:
    chain = Chain(most=10**9)
    assert chain.find() == DEPLOYMENT
    assert chain.requests == 1


def test_a_node_that_limits_ranges_is_asked_for_the_block_first() -> None:
    for _ in range(20):
        chain = Chain(most=random.randrange(1, 1_000))
        assert chain.find() == DEPLOYMENT
        assert chain.requests <= 2 + chain.head.bit_length()


def test_a_node_that_keeps_too_little_does_not_know_it() -> None:
    chain = Chain(most=1)
    chain.keeps_since = chain.head
    assert chain.find() is None


@pytest.mark.parametrize("event", [b"", secrets.token_bytes(64), _EVENT[:-64]])
def test_what_is_no_event_of_the_factory_is_no_deployment(event: bytes) -> None:
    assert Chain(most=10**9, event=event).find() is None


@pytest.mark.parametrize("response", [None, "0x", [7], [{}], [{"data": "0x1"}]])
def test_a_response_that_is_no_list_of_logs_is_the_nodes_fault(response: Any) -> None:
    def batch(calls: Sequence[Call]) -> list[Any]:
        return [call.read(response) for call in calls]

    with pytest.raises(MalformedResponse):
        first_deployments.find(batch, profile=random_address(), head=5)
