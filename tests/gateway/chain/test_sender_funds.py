"""Nodes that refuse to simulate a call because its sender has no coins: asked once more, with coins for the sender."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.chain.client import JsonRpcChainClient
from gateway.chain.errors import CallReverted, NodeUnavailable
from gateway.chain.types import RelayQuery
from tests.factories import random_address
from tests.gateway.chain.nodes import Behaviour, Response, reply, running
from tests.gateway.chain.op_stack import OpStack, running_op_stack

# Contract code: return the balance of the caller as a word.
_RETURNING_BALANCE = "0x33315f5260205ff3"
# What each client says, with a code that means something else elsewhere.
WORDS = [
    (-32003, "Insufficient funds for gas * price + value"),
    (-32000, "insufficient funds for gas * price + value: address 0x00 have 0 want 7"),
    (-32000, "err: insufficient funds for transfer (supplied gas 100)"),
    (-32004, "Upfront cost exceeds account balance"),
    (-32000, "insufficient sender balance"),
    (-32000, "InsufficientMaxFeePerGasForSenderBalance, insufficient MaxFeePerGas for sender balance"),
    (-32000, "Sender doesn't have enough funds to send tx. The max upfront cost is: 7"),
    (-32603, "lack of funds (0) for max fee (7)"),
    (-38014, "insufficient funds for gas * price + value"),
]


def _client(url: str) -> JsonRpcChainClient:
    return JsonRpcChainClient([url], timeout_seconds=60)


def _refusing(code: int, message: str, *, always: bool = False) -> Behaviour:
    """Refuse simulated calls whose sender gets no balance by an override."""

    def answer(call: dict[str, Any]) -> dict[str, Any]:
        fields, _, *overrides = call["params"]
        has_funds = bool(overrides) and "balance" in overrides[0].get(
            fields.get("from", "0x" + "00" * 20), {}
        )
        if has_funds and not always:
            return {"id": call["id"], "result": "0x5208"}
        return {"id": call["id"], "error": {"code": code, "message": message}}

    def behave(batch: list[dict[str, Any]]) -> Response:
        return reply([answer(call) for call in batch])

    return behave


def _simulated(client: JsonRpcChainClient) -> int:
    return client.simulate_relay_call(
        sender=random_address(), key_manager=random_address(), calldata=secrets.token_bytes(4), gas_cap=10**6
    )


@pytest.mark.parametrize(("code", "message"), WORDS)
def test_a_call_that_a_node_refuses_for_its_senders_balance_is_simulated_with_coins(
    code: int, message: str
) -> None:
    with running(_refusing(code, message)) as node:
        assert _simulated(_client(node.url)) == 21_000
        assert _client(node.url).read_view(contract=random_address(), calldata=b"") == b"\x52\x08"
    assert node.methods == ["eth_estimateGas"] * 2 + ["eth_call"] * 2


@pytest.mark.parametrize(("code", "message"), WORDS)
def test_a_node_that_refuses_it_with_coins_too_is_not_taken_for_the_contract(code: int, message: str) -> None:
    with running(_refusing(code, message, always=True)) as node, pytest.raises(NodeUnavailable):
        _simulated(_client(node.url))
    assert node.methods == ["eth_estimateGas"] * 2


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (3, "execution reverted: insufficient balance"),
        (-32015, "insufficient funds"),
        (-32603, "reverted with reason string 'lack of funds'"),
    ],
)
def test_a_contract_that_reverts_in_the_same_words_is_asked_once(code: int, message: str) -> None:
    with running(_refusing(code, message)) as node, pytest.raises(CallReverted):
        _simulated(_client(node.url))
    assert node.methods == ["eth_estimateGas"]


@pytest.fixture(scope="module")
def op_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpStack]:
    """A node of the OP stack that wants the fee for L1 from senders of simulated calls too."""
    with running_op_stack(tmp_path_factory.mktemp("op")) as running_node:
        yield running_node


def test_anvils_op_stack_simulates_calls_of_senders_without_coins(op_stack: OpStack) -> None:
    contract, client, calldata = random_address(), op_stack.client, secrets.token_bytes(400)
    op_stack.node.rpc.call("anvil_setCode", contract, _RETURNING_BALANCE)
    op_stack.node.rpc.call("anvil_setBalance", "0x" + "00" * 20, "0x0")
    assert int.from_bytes(client.read_view(contract=contract, calldata=b""), "big") > 0
    gas = client.simulate_relay_call(
        sender=random_address(), key_manager=contract, calldata=calldata, gas_cap=10**6
    )
    query = RelayQuery(
        profile=contract,
        key_manager=contract,
        controller=random_address(),
        channel=0,
        sender=random_address(),
        calldata=calldata,
        gas_limit=gas,
        gas_cap=2 * gas,
        compares=True,
    )
    (state,) = client.read_relay_states([query])
    assert (state.trial.revert, state.trial.agrees) == (None, True)
    assert state.profile_code_name == state.key_manager_code_name != ""
