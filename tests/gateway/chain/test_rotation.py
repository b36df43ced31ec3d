"""Nodes that are unfit leave the rotation by themselves and return by themselves; money waits for a quorum."""

import logging
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.chain.client import JsonRpcChainClient
from gateway.chain.errors import NodeUnavailable
from gateway.chain.nodes import NodeLimits
from gateway.chain.types import SendKind
from tests.gateway.chain.nodes import Node, Response, reply, running

_ACCOUNT = "0x" + secrets.token_hex(20)
_HASH = "0x" + secrets.token_hex(32)

_RECEIPT = {
    "transactionHash": _HASH,
    "blockNumber": "0x3e0",
    "blockHash": "0x" + secrets.token_hex(32),
    "status": "0x1",
    "gasUsed": "0x5208",
    "effectiveGasPrice": "0x1",
}


@dataclass
class Truth:
    """A node's view of a chain; a test changes it while the node runs."""

    chain_id: int = 4201
    height: int = 1_000
    age_seconds: float = 0
    nonce: int = 7
    receipt: dict[str, str] | None = field(default_factory=lambda: dict(_RECEIPT))
    send_error: str = ""
    over: threading.Event | None = None
    status: int = 200

    def __call__(self, batch: list[dict[str, Any]]) -> Response:
        assert self.over is None or self.over.wait(120)
        return reply([{"id": call["id"], **self._answer(call["method"])} for call in batch], self.status)

    def hang(self) -> threading.Event:
        """Send nothing until the event that is returned."""
        self.over = threading.Event()
        return self.over

    def _answer(self, method: str) -> dict[str, Any]:
        if method == "eth_sendRawTransaction" and self.send_error:
            return {"error": {"code": -32000, "message": self.send_error}}
        block = {
            "number": hex(self.height),
            "timestamp": hex(int(time.time() - self.age_seconds)),
            "baseFeePerGas": "0x1",
            "hash": "0x" + f"{self.height:064x}",
        }
        results = {
            "eth_chainId": hex(self.chain_id),
            "eth_getBlockByNumber": block,
            "eth_getTransactionReceipt": self.receipt,
            "eth_getTransactionCount": hex(self.nonce),
            "eth_getBalance": "0x64",
            "eth_getCode": "0x",
            "eth_sendRawTransaction": _HASH,
        }
        return {"result": results[method]}


@dataclass
class Setting:
    """A client over some nodes."""

    client: JsonRpcChainClient
    truths: list[Truth]
    running: list[Node]

    def faults(self) -> list[str]:
        """Check the nodes; return the fault of each."""
        self.client.node_checks().check()
        return [node.fault for node in self.client.nodes()]

    def nonce(self) -> int:
        """Return the account nonce that counts."""
        view = self.client.read_chain(transaction_hashes=[_HASH], accounts=[_ACCOUNT], confirmations=2)
        return view.accounts[_ACCOUNT].latest_nonce


@pytest.fixture
def make() -> Iterator[Any]:
    """Return a function that makes a client over that many honest nodes, who get the time that they need."""
    with ExitStack() as parts:

        def run(
            count: int, *, quorum: int | None = None, timeout_seconds: float = 60, check_seconds: float = 60
        ) -> Setting:
            truths = [Truth() for _ in range(count)]
            started = [parts.enter_context(running(truth)) for truth in truths]
            client = JsonRpcChainClient(
                [node.url for node in started],
                timeout_seconds=timeout_seconds,
                check_seconds=check_seconds,
                limits=NodeLimits(4201, max_head_age_seconds=60, max_lag_blocks=5),
                quorum=quorum,
            )
            return Setting(client, truths, started)

        yield run


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"chain_id": 1}, "it is of another chain"),
        ({"age_seconds": 600}, "its newest block is too old"),
        ({"height": 950}, "it is 50 blocks behind"),
    ],
)
def test_an_unfit_node_leaves_and_returns_by_itself_and_each_change_is_logged_once(
    make: Any, changes: dict[str, Any], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    setting = make(2)
    assert setting.faults() == ["", ""]
    for name, value in changes.items():
        setattr(setting.truths[0], name, value)
    assert setting.faults() == setting.faults() == [fault, ""]

    batch_count = len(setting.running[0].batches)
    setting.client.head()
    (outcome,) = setting.client.send_raw_transactions([b"\x02"])
    assert outcome.kind is SendKind.ACCEPTED
    assert len(setting.running[0].batches) == batch_count

    setting.truths[0].__init__()
    assert setting.faults() == setting.faults() == ["", ""]
    setting.client.head()
    assert len(setting.running[0].batches) > batch_count
    ours = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    name = setting.client.nodes()[0].name
    assert ours == [
        f"chain node {name} leaves the rotation: {fault}",
        f"chain node {name} is back in the rotation",
    ]


@pytest.mark.parametrize("changes", [{"chain_id": 1}, {"age_seconds": 600}])
def test_a_single_unfit_node_is_not_used_either(make: Any, changes: dict[str, Any]) -> None:
    setting = make(1)
    for name, value in changes.items():
        setattr(setting.truths[0], name, value)
    assert setting.faults() != [""]
    with pytest.raises(NodeUnavailable):
        setting.client.head()
    (outcome,) = setting.client.send_raw_transactions([b"\x02"])
    assert outcome.kind is SendKind.UNREACHABLE


def test_a_node_that_claims_to_be_far_ahead_does_not_remove_two_others(make: Any) -> None:
    setting = make(3)
    setting.truths[0].height = 10**9
    assert setting.faults() == [""] * 3
    assert setting.nonce() == 7


def test_a_node_that_changes_its_chain_between_two_checks_moves_and_refuses_nothing(make: Any) -> None:
    setting = make(1)
    setting.truths[0].chain_id, setting.truths[0].send_error = 1, "invalid chain id for signer"
    with pytest.raises(NodeUnavailable):
        setting.nonce()
    (outcome,) = setting.client.send_raw_transactions([b"\x02"])
    assert outcome.kind is SendKind.UNREACHABLE


def test_with_one_of_two_nodes_away_sending_continues_and_settlement_waits(make: Any) -> None:
    setting = make(2)
    setting.truths[1].status = 503
    assert setting.client.head().number == 1_000
    (outcome,) = setting.client.send_raw_transactions([b"\x02"])
    assert outcome.kind is SendKind.ACCEPTED
    with pytest.raises(NodeUnavailable, match="1 of 2 chain nodes respond, and 2 must agree"):
        setting.nonce()
    setting.truths[1].status = 200
    assert setting.nonce() == 7


def test_the_setting_may_require_fewer_nodes(make: Any) -> None:
    setting = make(2, quorum=1)
    setting.truths[1].status = 503
    assert setting.nonce() == 7


def test_a_transaction_refused_by_one_of_two_nodes_is_resent_while_the_other_is_away(make: Any) -> None:
    setting = make(2)
    setting.truths[0].send_error, setting.truths[1].status = "insufficient funds", 503
    (outcome,) = setting.client.send_raw_transactions([b"\x02"])
    assert (outcome.kind, outcome.message) == (SendKind.LATER, "insufficient funds")
    setting.truths[1].__init__(send_error="insufficient funds")
    (outcome,) = setting.client.send_raw_transactions([b"\x02"])
    assert outcome.kind is SendKind.REFUSED


def test_a_hanging_node_delays_sending_only_briefly(
    make: Any,
) -> None:
    setting = make(2)
    over = setting.truths[0].hang()
    began = time.monotonic()
    (outcome,) = setting.client.send_raw_transactions([b"\x02"])
    over.set()
    assert outcome.kind is SendKind.ACCEPTED
    # Long before the node's time is up.
    assert time.monotonic() - began < 30


def test_a_hung_node_costs_a_few_threads_their_time_and_the_others_none(make: Any) -> None:
    setting = make(1, timeout_seconds=3)
    over = setting.truths[0].hang()

    def call(_: int) -> None:
        with pytest.raises(NodeUnavailable):
            setting.client.head()

    with ThreadPoolExecutor(32) as threads:
        list(threads.map(call, range(64)))
    # Eight may wait. Where the machine stalled, two more took the places of the first who gave up.
    batch_count = len(setting.running[0].batches)
    assert 0 < batch_count <= 10
    # It has failed several times in a row by now, and is not asked.
    call(0)
    assert len(setting.running[0].batches) == batch_count
    over.set()


def test_checks_find_a_recovered_node(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    setting = make(1)
    setting.truths[0].status = 503
    for _ in range(3):
        setting.client.node_checks().check()
    assert [node.fault for node in setting.client.nodes()] == ["no response: HTTP 503"]
    batch_count = len(setting.running[0].batches)
    with pytest.raises(NodeUnavailable):
        setting.client.head()
    assert len(setting.running[0].batches) == batch_count
    assert "no recent response (HTTP 503)" in caplog.text
    setting.truths[0].status = 200
    assert setting.faults() == [""]
    assert setting.client.head().number == 1_000


def test_the_share_of_failed_requests_and_checks_is_known_and_falls_again(make: Any) -> None:
    setting = make(1)
    truth = setting.truths[0]
    for number in range(20):
        truth.status = 429 if number % 3 else 200
        setting.faults()
    (node,) = setting.client.nodes()
    assert node.failed_share == 13 / 20
    truth.status = 200
    for _ in range(20):
        setting.faults()
    (node,) = setting.client.nodes()
    assert node.failed_share == 0


def test_two_nodes_of_one_host_have_two_names_and_no_key() -> None:
    client = JsonRpcChainClient(
        ["https://user:pass@rpc.example/key-1", "https://rpc.example/key-2"], timeout_seconds=1
    )
    assert [node.name for node in client.nodes()] == ["rpc.example", "rpc.example#2"]
