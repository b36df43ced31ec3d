"""What the client asks of a node, and what it makes of strange responses."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.chain import contracts
from gateway.chain.client import JsonRpcChainClient
from gateway.chain.errors import CallReverted, NodeUnavailable
from gateway.chain.rpc import RpcError
from gateway.chain.types import AccountState, BlockId, Finality, Head, RelayQuery, Trial
from tests.fakes.profiles import random_address, set_data
from tests.gateway.chain.nodes import Node, reply, running

_HASH = "0x" + "AB" * 32
_BLOCK = {"number": "0x64", "timestamp": "0x65000000", "baseFeePerGas": "0x7", "hash": _HASH}
_REVERTED = RpcError(3, "execution reverted")


class Script:
    """Responses by method; a callable gets the parameters."""

    def __init__(self) -> None:
        self.responses: dict[str, Any] = {
            "eth_getBlockByNumber": _BLOCK,
            "eth_getCode": "0x60",
            "eth_call": "0x",
            "eth_estimateGas": "0x5208",
            "eth_simulateV1": RpcError(-32601, "no such method"),
            "eth_feeHistory": {"reward": [["0x1"]], "gasUsedRatio": [0.5]},
            "eth_getTransactionReceipt": None,
            "eth_getTransactionCount": "0x5",
            "eth_getBalance": "0x10",
        }

    def __call__(self, batch: list[dict[str, Any]]) -> tuple[int, bytes]:
        return reply([{"id": call["id"], **self._answer(call)} for call in batch])

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        response = self.responses[call["method"]]
        response = response(*call["params"]) if callable(response) else response
        if isinstance(response, RpcError):
            return {"error": {"code": response.code, "message": response.message, "data": response.data}}
        return {"result": response}


@pytest.fixture
def script() -> Script:
    """Return the node's response."""
    return Script()


@pytest.fixture
def node(script: Script) -> Iterator[Node]:
    """Return a node that follows the script."""
    with running(script) as node:
        yield node


@pytest.fixture
def client(node: Node) -> JsonRpcChainClient:
    """Return a client of that node alone."""
    return JsonRpcChainClient([node.url], timeout_seconds=60)


def _relay_state(client: JsonRpcChainClient) -> Any:
    return client.read_relay_states([_query()])[0]


def _query(**fields: Any) -> RelayQuery:
    unknown: dict[str, Any] = {name: random_address() for name in ("profile", "key_manager", "controller")}
    trial = {
        "channel": 0,
        "sender": random_address(),
        "calldata": b"\1",
        "gas_limit": None,
        "gas_cap": 500_000,
    }
    return RelayQuery(**unknown | trial | fields)


def _lens_or(otherwise: Any) -> Any:
    """
    Respond to a lens, which comes with a state override, with an empty response to each question; other calls as given.
    """

    def answer(*params: Any) -> Any:
        if len(params) < 3:
            return otherwise
        questions = bytes.fromhex(params[0]["data"][2:])
        count = 0
        while questions:
            questions = questions[22 + int.from_bytes(questions[20:22], "big") :]
            count += 1
        return "0x" + "00" * 32 * count

    return answer


def _profile(client: JsonRpcChainClient) -> Any:
    return client.read_profile(
        profile=random_address(), controller=random_address(), digest=bytes(32), signature=bytes(65)
    )


def test_relay_states_are_one_request(client: JsonRpcChainClient, node: Node, script: Script) -> None:
    script.responses["eth_call"] = _lens_or("0x")
    states = client.read_relay_states([_query(), _query()])
    assert len(node.batches) == 1
    assert [state.head for state in states] == [Head(100, 0x65000000, 7, _HASH.lower())] * 2


def test_a_lens_reads_for_up_to_eight_calls_with_gas_for_each(
    client: JsonRpcChainClient, node: Node, script: Script
) -> None:
    script.responses["eth_call"] = _lens_or("0x")
    assert len(client.read_relay_states([_query() for _ in range(9)])) == 9
    (batch,) = node.batches
    assert [call["params"][0]["gas"] for call in batch if call["method"] == "eth_call"] == [
        hex(40_000_000),
        hex(5_000_000),
    ]


def test_the_newest_block_and_the_tip_are_read_again_when_they_are_old(node: Node, script: Script) -> None:
    script.responses["eth_call"] = _lens_or("0x")
    patient = JsonRpcChainClient([node.url], timeout_seconds=60, price_seconds=3600)
    first = _relay_state(patient)
    script.responses["eth_getBlockByNumber"] = _BLOCK | {"number": "0x65"}
    assert _relay_state(patient) == first
    assert [len(batch) for batch in node.batches] == [5, 2]
    hurried = JsonRpcChainClient([node.url], timeout_seconds=60)
    assert [_relay_state(hurried).head.number, _relay_state(hurried).head.number] == [101, 101]
    assert [len(batch) for batch in node.batches] == [5, 2, 5, 4]


@pytest.mark.parametrize("answer", ["0x", "0x" + "00" * 32, RpcError(-32602, "too many arguments")])
def test_without_state_overrides_contracts_are_read_one_by_one(
    client: JsonRpcChainClient, node: Node, script: Script, answer: Any
) -> None:
    owner = "0x" + "00" * 12 + "11" * 20
    script.responses["eth_call"] = lambda *params: answer if len(params) == 3 else owner
    assert _relay_state(client).owner == "0x" + "11" * 20
    assert [len(batch) for batch in node.batches] == [5, 6]
    # And the next time without trying a lens first.
    assert _relay_state(client).owner == "0x" + "11" * 20
    assert not any(
        len(call["params"]) == 3
        for batch in node.batches[2:]
        for call in batch
        if call["method"] == "eth_call"
    )


@pytest.mark.parametrize("code", [-32601, -32004, -32602])
def test_without_simulations_a_limit_is_tried_by_a_plain_call(
    client: JsonRpcChainClient, script: Script, code: int
) -> None:
    script.responses["eth_call"] = _lens_or("0x")
    script.responses["eth_simulateV1"] = RpcError(code, "no such thing")
    (state,) = client.read_relay_states([_query(gas_limit=90_000)])
    assert state.trial == Trial(90_000)
    script.responses["eth_call"] = _lens_or(_REVERTED)
    (state,) = client.read_relay_states([_query(gas_limit=90_000)])
    assert state.trial == Trial(90_000, revert=b"")


@pytest.mark.parametrize("answer", [[], [{}], [{"calls": []}], [{"calls": [{"status": "0x1"}]}], {}, "0x"])
def test_a_malformed_simulation_is_node_unavailable(
    client: JsonRpcChainClient, script: Script, answer: Any
) -> None:
    script.responses |= {"eth_call": _lens_or("0x"), "eth_simulateV1": answer}
    with pytest.raises(NodeUnavailable):
        client.read_relay_states([_query(gas_limit=90_000)])


def test_every_read_names_the_newest_block(client: JsonRpcChainClient, node: Node, script: Script) -> None:
    script.responses["eth_call"] = _lens_or("0x")
    script.responses["eth_simulateV1"] = RpcError(-32601, "no such method")
    client.read_relay_states([_query(), _query(gas_limit=90_000)])
    client.simulate_relay_call(
        sender=random_address(), key_manager=random_address(), calldata=b"", gas_cap=100_000
    )
    named = [call["params"][1] for batch in node.batches for call in batch if call["method"] in _TAGGED]
    assert named == ["latest"] * 8


_TAGGED = {"eth_getCode", "eth_call", "eth_estimateGas", "eth_feeHistory", "eth_simulateV1"}


def test_the_gas_of_each_read_is_capped(client: JsonRpcChainClient, node: Node) -> None:
    _relay_state(client)
    _profile(client)
    client.read_key_manager(key_manager=random_address())
    client.read_permissions(profile=random_address(), controllers=[random_address()])
    calls = [
        call["params"][0]
        for batch in node.batches
        for call in batch
        if call["method"] == "eth_call" and len(call["params"]) == 2
    ]
    assert [int(call["gas"], 16) for call in calls] == [500_000] * 9


@pytest.mark.parametrize(
    ("answer", "valid"),
    [
        ("0x1626ba7e" + "00" * 28, True),
        ("0x1626ba7e" + "ff" * 28, True),
        ("0x1626ba7e", False),
        ("0x1626ba7e" + "00" * 60, False),
        ("0xffffffff" + "00" * 28, False),
        ("0x" + "00" * 28 + "1626ba7e", False),
        ("0x", False),
        (_REVERTED, False),
    ],
)
def test_only_the_magic_word_is_a_valid_signature(
    client: JsonRpcChainClient, script: Script, answer: Any, valid: bool
) -> None:
    script.responses["eth_call"] = answer
    assert _profile(client).signature_valid is valid


@pytest.mark.parametrize("nonsense", ["0x", "0x01", "0x" + "ff" * 32, "0x" + "00" * 64, _REVERTED])
def test_malformed_contract_results_mean_no_owner_target_or_permissions(
    client: JsonRpcChainClient, script: Script, nonsense: Any
) -> None:
    script.responses["eth_call"] = nonsense
    state = _relay_state(client)
    assert (state.owner, state.target, state.permissions) == (None, None, 0)


def _data(value: bytes, *, offset: int = 32, length: int | None = None) -> str:
    words = offset.to_bytes(32, "big") + (len(value) if length is None else length).to_bytes(32, "big")
    return "0x" + (words + value).hex()


@pytest.mark.parametrize(
    ("answer", "permissions"),
    [
        (_data(b""), 0),
        (_data((0x400800).to_bytes(32, "big")), 0x400800),
        # Key managers read fewer bytes as the upper ones, and more bytes as their beginning.
        (_data(b"\x01"), 1 << 248),
        (_data(bytes(31) + b"\x05" + b"\xff" * 32), 5),
        (_data(b"\x01" * 32, length=2**255), 0),
        (_data(b"\x01" * 32, offset=2**255), 0),
        ("0x" + "ff" * 96, 0),
        (_REVERTED, 0),
    ],
)
def test_permissions_are_read_as_key_managers_read_them(
    client: JsonRpcChainClient, script: Script, answer: Any, permissions: int
) -> None:
    script.responses["eth_call"] = answer
    read = client.read_permissions(profile=random_address(), controllers=[random_address()])
    assert read == [permissions]


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("eth_getBlockByNumber", None),
        ("eth_getBlockByNumber", {"number": "0x1"}),
        ("eth_getBlockByNumber", _BLOCK | {"number": "first"}),
        ("eth_getCode", None),
        ("eth_getCode", "0x1"),
        ("eth_getCode", "0x12 34"),
        ("eth_getCode", "1234"),
        ("eth_call", 7),
    ],
)
def test_a_malformed_response_of_the_node_raises_node_unavailable(
    client: JsonRpcChainClient, script: Script, method: str, answer: Any
) -> None:
    script.responses[method] = answer
    with pytest.raises(NodeUnavailable) as refused:
        _relay_state(client)
    assert refused.value.retry_after == 2


@pytest.mark.parametrize(
    ("rewards", "ratios", "tip"),
    [
        # Half of the gas paid at most this much.
        ([1, 9, 5], [0.5, 0.4, 0.5], 5),
        ([1, 9, 5], [1, 0.1, 0.1], 1),
        ([1, 9], [0.5, 0.5], 1),
        # Ten small transactions beside one full block.
        ([7, *[900] * 10], [1, *[0.001] * 10], 7),
        # Hardly used: fees paid there mean nothing.
        ([900] * 10, [0.001] * 10, 0),
        ([900] * 10, [0.099] * 10, 0),
        ([0, 0], [0, 0], 0),
        ([], [], 0),
    ],
)
def test_the_market_tip_is_the_gas_weighted_median_of_used_blocks(
    client: JsonRpcChainClient, script: Script, rewards: list[int], ratios: list[float], tip: int
) -> None:
    script.responses["eth_feeHistory"] = {
        "reward": [[hex(reward)] for reward in rewards],
        "gasUsedRatio": ratios,
    }
    assert _relay_state(client).market_tip_wei == tip


@pytest.mark.parametrize(
    "history",
    [
        {"reward": None, "gasUsedRatio": [1]},
        {"reward": [[None], [None]], "gasUsedRatio": [0.9, 0.9]},
        {"gasUsedRatio": None},
        RpcError(-32601, "no such method"),
    ],
)
def test_a_node_without_a_fee_history_reports_no_market(
    client: JsonRpcChainClient, script: Script, history: Any
) -> None:
    script.responses["eth_feeHistory"] = history
    assert _relay_state(client).market_tip_wei == 0


@pytest.mark.parametrize(
    "history",
    [
        [],
        {},
        *({"reward": [["0x1"]], "gasUsedRatio": [ratio]} for ratio in ("0.5", float("nan"), -1, True)),
        *({"reward": rows, "gasUsedRatio": [1]} for rows in ([1], [[1]], [["-0x1"]], 7)),
    ],
)
def test_a_malformed_fee_history_is_node_unavailable(
    client: JsonRpcChainClient, script: Script, history: Any
) -> None:
    script.responses["eth_feeHistory"] = history
    with pytest.raises(NodeUnavailable):
        _relay_state(client)


def test_the_head_is_read_first_and_nonces_also_at_the_confirmed_block(
    client: JsonRpcChainClient, node: Node, script: Script
) -> None:
    script.responses["eth_getTransactionCount"] = lambda _, block: "0x5" if block == "latest" else "0x3"
    script.responses["eth_getCode"] = "0x"
    account = random_address()
    view = client.read_chain(
        transaction_hashes=["0x" + secrets.token_hex(32)], accounts=[account], confirmations=2
    )
    assert node.methods[:2] == ["eth_getBlockByNumber", "eth_getTransactionReceipt"]
    params = [call["params"] for call in node.batches[1]]
    assert params == [[account, "latest"], [account, hex(99)], [account, "latest"], [account, "latest"]]
    assert view.accounts == {account: AccountState(5, 3, 16)}
    assert view.receipts == {}


@pytest.mark.parametrize(("confirmations", "block"), [(1, 100), (3, 98), (101, 0), (500, 0)])
def test_the_confirmed_block_counts_from_the_head(
    client: JsonRpcChainClient, node: Node, confirmations: int, block: int
) -> None:
    client.read_chain(transaction_hashes=[], accounts=[random_address()], confirmations=confirmations)
    assert node.batches[1][1]["params"][1] == hex(block)


@pytest.mark.parametrize(
    "tagged",
    [
        RpcError(-39001, "Unknown block"),
        RpcError(-32000, "finalized block not found"),
        RpcError(-32602, "?"),
        None,
    ],
)
def test_without_a_finalized_tag_of_the_node_blocks_are_counted(
    client: JsonRpcChainClient, node: Node, script: Script, tagged: RpcError | None
) -> None:
    script.responses["eth_getBlockByNumber"] = lambda name, _: (
        tagged if name == "finalized" else _BLOCK | ({} if name == "latest" else {"number": name})
    )
    finality = Finality(blocks=10, by_tag=True)
    view = client.read_chain(
        transaction_hashes=[], accounts=[random_address()], confirmations=2, finality=finality
    )
    assert view.final == BlockId(91, _HASH.lower())
    assert [len(batch) for batch in node.batches] == [1, 6]


def test_long_ranges_of_blocks_are_searched_in_pieces(
    client: JsonRpcChainClient, node: Node, script: Script
) -> None:
    script.responses["eth_getLogs"] = []
    key_manager, controller = random_address(), random_address()
    executions = client.read_external_executions(
        key_manager=key_manager, controller=controller, from_block=0, to_block=2_500
    )
    assert executions == []
    filters = [call["params"][0] for batch in node.batches for call in batch]
    assert [(int(one["fromBlock"], 16), int(one["toBlock"], 16)) for one in filters] == [
        (0, 999),
        (1_000, 1_999),
        (2_000, 2_500),
    ]
    assert [one["address"] for one in filters] == [[key_manager]] * 3
    assert {one["topics"][1] for one in filters} == {"0x" + "00" * 12 + controller[2:].lower()}


_TOPICS = [
    contracts.PERMISSIONS_VERIFIED_TOPIC,
    "0x" + "00" * 12 + "22" * 20,
    "0x" + "00" * 32,
    "0x44c028fe" + "00" * 28,
]


def _log(topics: Any, **fields: Any) -> dict[str, Any]:
    """Return a log as nodes write it."""
    log = {
        "address": random_address().lower(),
        "blockHash": "0x" + secrets.token_hex(32),
        "blockNumber": "0x5",
        "data": "0x",
        "logIndex": "0x0",
        "removed": False,
        "topics": topics,
        "transactionHash": "0x" + secrets.token_hex(32),
        "transactionIndex": "0x0",
    }
    return log | fields


def test_logs_and_transactions_removed_by_a_reorg_are_left_out(
    client: JsonRpcChainClient, script: Script
) -> None:
    def log(transaction_hash: str, *, removed: bool) -> dict[str, Any]:
        return _log(_TOPICS, transactionHash=transaction_hash, removed=removed)

    kept, gone, lost = ("0x" + secrets.token_hex(32) for _ in range(3))
    script.responses["eth_getLogs"] = [
        log(kept, removed=False),
        log(gone, removed=True),
        log(lost, removed=False),
    ]
    sender = random_address()
    script.responses["eth_getTransactionByHash"] = lambda name: (
        None if name == lost else {"from": sender.lower(), "to": None, "input": "0x0102"}
    )
    (execution,) = client.read_external_executions(
        key_manager=random_address(), controller=random_address(), from_block=0, to_block=9
    )
    assert (execution.transaction_hash, execution.sender, execution.to) == (kept, sender, None)
    assert (execution.calldata, execution.selector, execution.block_number) == (
        b"\x01\x02",
        b"\x44\xc0\x28\xfe",
        5,
    )


@pytest.mark.parametrize(
    "topics",
    [
        # The filter asks for the first two; a contract may stop there, or put more into the last one than a selector.
        _TOPICS[:2],
        _TOPICS[:3],
        [*_TOPICS[:3], "0x44c028fe" + "00" * 27 + "01"],
        ["0x" + "11" * 32, *_TOPICS[1:]],
    ],
    ids=["two", "three", "dirty", "another event"],
)
def test_a_log_of_another_shape_is_not_a_permissions_verified_event(
    client: JsonRpcChainClient, script: Script, topics: list[str]
) -> None:
    script.responses["eth_getLogs"] = [_log(topics)]
    assert (
        client.read_external_executions(
            key_manager=random_address(), controller=random_address(), from_block=0, to_block=9
        )
        == []
    )


def test_a_follower_reverts_unless_the_key_manager_returns_the_lsp20_value(
    client: JsonRpcChainClient, script: Script
) -> None:
    script.responses["eth_estimateGas"] = "0x10000"
    for word in ("0x", "0x" + "ff" * 32, "0x1626ba7e" + "00" * 28):
        script.responses["eth_call"] = word
        with pytest.raises(CallReverted):
            _follower(client)
    script.responses["eth_call"] = "0xde928f01" + "00" * 28
    assert _follower(client) > 2 * 0x10000 - 21_000


def test_a_follower_is_one_request(client: JsonRpcChainClient, node: Node, script: Script) -> None:
    script.responses |= {"eth_estimateGas": "0x10000", "eth_call": "0xde928f00" + "00" * 28}
    _follower(client)
    assert [len(batch) for batch in node.batches] == [3]


def _follower(client: JsonRpcChainClient) -> int:
    return client.simulate_follower(
        key_manager=random_address(),
        profile=random_address(),
        controller=random_address(),
        payload=set_data(),
        gas_cap=3_000_000,
    )
