"""Whatever a node returns is that node's fault: the next one is asked, and no exception of another type comes out."""

import asyncio
import json
import logging
import random
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.chain import node as node_module
from gateway.chain.client import JsonRpcChainClient
from gateway.chain.errors import CallReverted, NodeUnavailable, ResultTooLarge
from gateway.chain.nodes import NodeLimits
from gateway.chain.rpc import RpcError
from gateway.chain.types import RelayQuery, SendKind, SendOutcome
from gateway.common import metrics
from lab.chaos.http_proxy import NodeProxy
from lab.chaos.mutations import Mutations
from lab.chaos.proxies import Loop, tcp
from tests.fakes.profiles import random_address
from tests.gateway.chain.nodes import Behaviour, Node, Response, error, reply, running
from tests.gateway.chain.test_client_responses import Script, _lens_or

_ACCOUNT, _HASHES = random_address(), ["0x" + secrets.token_hex(32) for _ in range(3)]


def _receipt(transaction_hash: str) -> dict[str, Any]:
    return {
        "transactionHash": transaction_hash,
        "blockNumber": "0x60",
        "blockHash": "0x" + "11" * 32,
        "status": "0x1",
        "gasUsed": "0x5208",
        "effectiveGasPrice": "0x1",
    }


def _honest() -> Script:
    script = Script()
    block = script.responses["eth_getBlockByNumber"]
    script.responses |= {
        "eth_chainId": hex(4201),
        "eth_getBlockByNumber": lambda *_: block | {"timestamp": hex(int(time.time()))},
        "eth_getTransactionReceipt": _receipt,
        "eth_call": _lens_or("0x"),
        "eth_simulateV1": [{"calls": [{"status": "0x1", "gasUsed": "0x5208", "returnData": "0x"}]}],
        "eth_sendRawTransaction": "0x" + "22" * 32,
        "eth_getLogs": [],
        "eth_getTransactionByHash": None,
    }
    return script


def _client(*nodes: Node, timeout_seconds: float = 60) -> JsonRpcChainClient:
    return JsonRpcChainClient(
        [node.url for node in nodes],
        timeout_seconds=timeout_seconds,
        check_seconds=timeout_seconds,
        limits=NodeLimits(4201, 600),
    )


def _query() -> RelayQuery:
    return RelayQuery(
        profile=random_address(),
        key_manager=random_address(),
        controller=random_address(),
        channel=0,
        sender=random_address(),
        calldata=b"\x01",
        gas_limit=90_000,
        gas_cap=500_000,
    )


def _estimate(client: JsonRpcChainClient) -> int:
    return client.simulate_relay_call(sender=_ACCOUNT, key_manager=_ACCOUNT, calldata=b"", gas_cap=500_000)


def _view(client: JsonRpcChainClient) -> Any:
    return client.read_chain(transaction_hashes=_HASHES, accounts=[_ACCOUNT], confirmations=2, heights=[5])


# One read for each method that the client calls, and more.
READS: dict[str, Callable[[JsonRpcChainClient], Any]] = {
    "head": lambda client: client.head(),
    "chain id": lambda client: client.chain_id(),
    "relay states": lambda client: client.read_relay_states([_query()]),
    "view": _view,
    "pending": lambda client: client.read_pending_nonces(accounts=[_ACCOUNT]),
    "profile": lambda client: client.read_profile(
        profile=_ACCOUNT, controller=_ACCOUNT, digest=bytes(32), signature=bytes(65)
    ),
    "key manager": lambda client: client.read_key_manager(key_manager=_ACCOUNT),
    "estimate": _estimate,
    "code": lambda client: client.probe_code(address=_ACCOUNT),
    "nonce": lambda client: client.read_relay_nonce(key_manager=_ACCOUNT, controller=_ACCOUNT, channel=0),
    "view of a contract": lambda client: client.read_view(contract=_ACCOUNT, calldata=bytes(4)),
    "data": lambda client: client.read_data(profile=_ACCOUNT, key=bytes(32)),
    "logs": lambda client: client.read_external_executions(
        key_manager=_ACCOUNT, controller=_ACCOUNT, from_block=1, to_block=2
    ),
    "send": lambda client: client.send_raw_transactions([b"\x02"]),
}

_SIZED_BY_CONTRACT = {"profile", "key manager", "estimate", "code", "nonce", "data"}


def _answering(method: str, answer: Any) -> Behaviour:
    script = _honest()
    script.responses[method] = answer
    return script


def _body(body: bytes) -> Behaviour:
    return lambda _: (200, body)


_BLOCK = {"number": "0x64", "timestamp": "0x65000000", "baseFeePerGas": "0x7", "hash": "0x" + "AB" * 32}
_NO_FEE = {name: value for name, value in _BLOCK.items() if name != "baseFeePerGas"}


def _unhashable(batch: list[dict[str, Any]]) -> Response:
    return reply([{"id": [1] if place == 1 else place, "result": "0x1"} for place in range(len(batch))])


@pytest.mark.parametrize(
    ("behave", "method"),
    [
        (_answering("eth_getBlockByNumber", _NO_FEE), "eth_getBlockByNumber"),
        (_answering("eth_feeHistory", {}), "eth_feeHistory"),
        (_answering("eth_feeHistory", {"reward": [["0x1"]], "gasUsedRatio": [float("nan")]}), ""),
        (_answering("eth_call", None), "eth_call"),
        (_answering("eth_simulateV1", None), "eth_simulateV1"),
        (_answering("eth_getBlockByNumber", "0x" + "ab" * 5 * 2**20), "eth_getBlockByNumber"),
        (_unhashable, ""),
        (_body(b"<html>"), ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_after_a_malformed_response_the_next_node_is_used_and_the_first_is_skipped(
    behave: Behaviour, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    metrics.CHAIN_WRONG_ANSWERS.take()
    with running(behave) as wrong, running(_honest()) as second, running(_honest()) as third:
        client = _client(wrong, second, third)
        assert len(client.read_relay_states([_query()])) == 1
        assert client.head().number == 100
        (outcome,) = client.send_raw_transactions([b"\x02"])
        assert outcome.kind is SendKind.ACCEPTED
        assert len(_view(client).receipts) == 3
        # It was asked once, then left the rotation.
        assert len(wrong.batches) == 1
    faults = [node.fault for node in client.nodes()]
    assert faults[0].startswith(f"invalid response: {method}")
    assert faults[1:] == ["", ""]
    name = client.nodes()[0].name
    # Where no call's own response is wrong, the whole response to its batch is.
    named = method or wrong.batches[0][0]["method"]
    assert metrics.CHAIN_WRONG_ANSWERS.take() == {f"chain_wrong_answers total {name} {named}": 1}
    (logged,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert logged.startswith(f"chain node {name} leaves the rotation: invalid response: {method}")


@pytest.mark.parametrize("answer", [None, _NO_FEE])
def test_the_check_fails_for_a_node_without_a_newest_block(answer: Any) -> None:
    with running(_answering("eth_getBlockByNumber", answer)) as wrong, running(_honest()) as good:
        client = _client(wrong, good)
        client.node_checks().check()
        assert [bool(node.fault) for node in client.nodes()] == [True, False]
        wrong.behave = _honest()
        client.node_checks().check()
        assert [node.fault for node in client.nodes()] == ["", ""]


def test_a_node_that_closes_the_connection_at_its_check_is_away_and_not_wrong(loop: Loop) -> None:
    metrics.CHAIN_WRONG_ANSWERS.take()
    with running(_honest()) as node, running(_honest()) as good:
        proxy = NodeProxy(loop, tcp(lambda: urlsplit(node.url).port or 0))
        client = JsonRpcChainClient(
            [f"http://127.0.0.1:{proxy.port}", good.url], timeout_seconds=30, limits=NodeLimits(4201, 600)
        )
        proxy.cut()
        client.node_checks().check()
        assert metrics.CHAIN_WRONG_ANSWERS.take() == {}
        assert "wrong" not in client.nodes()[0].fault
        proxy.heal()
        client.node_checks().check()
        assert [node.fault for node in client.nodes()] == ["", ""]
        proxy.cut()


def test_a_node_that_takes_one_call_at_a_time_passes_its_check() -> None:
    honest = _honest()
    with running(lambda batch: reply([]) if len(batch) > 1 else honest(batch)) as node:
        client = _client(node)
        client.node_checks().check()
        assert [node.fault for node in client.nodes()] == [""]
    assert [len(batch) for batch in node.batches] == [2, 1, 1]


def test_the_only_node_is_still_used_after_a_malformed_response() -> None:
    with running(_answering("eth_feeHistory", {})) as node:
        client = _client(node)
        with pytest.raises(NodeUnavailable):
            client.read_relay_states([_query()])
        assert client.head().number == 100
        node.behave = _honest()
        assert len(client.read_relay_states([_query()])) == 1


def test_an_error_of_eight_megabytes_keeps_no_bytes_from_the_other_node() -> None:
    long = {"error": {"code": -32000, "message": "x" * 8 * 2**20}}
    with (
        running(lambda batch: reply([{"id": call["id"], **long} for call in batch])) as wrong,
        running(_honest()) as good,
    ):
        client = _client(wrong, good)
        (outcome,) = client.send_raw_transactions([b"\x02"])
        assert outcome == SendOutcome(SendKind.ACCEPTED, "")


def test_a_contracts_oversized_response_faults_neither_the_node_nor_other_calls() -> None:
    script = _honest()
    big = [{"calls": [{"status": "0x0", "gasUsed": "0x5208", "returnData": "0x" + "00" * 1_200_000}]}]
    hostile = _query()
    script.responses["eth_simulateV1"] = lambda call, _: (
        big
        if call["blockStateCalls"][0]["calls"][0]["to"] == hostile.key_manager
        else [{"calls": [{"status": "0x1", "gasUsed": "0x5208", "returnData": "0x"}]}]
    )
    with running(script) as node:
        client = _client(node)
        states = client.read_relay_states([_query(), hostile, _query()])
        assert [state.trial.revert for state in states] == [None, b"", None]
        assert [state.trial.is_oversized for state in states] == [False, True, False]
        assert [health.fault for health in client.nodes()] == [""]


class TestOversizedResponses:
    """One node says that a contract returns too much; whether it does, others tell."""

    @staticmethod
    def _large() -> Behaviour:
        return _answering(
            "eth_simulateV1",
            [{"calls": [{"status": "0x1", "gasUsed": "0x1", "returnData": "0x" + "00" * 300_000}]}],
        )

    def test_a_node_that_is_contradicted_is_at_fault_and_no_caller_notices(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        metrics.CHAIN_WRONG_ANSWERS.take()
        with running(self._large()) as liar, running(_honest()) as second, running(_honest()) as third:
            client = _client(liar, second, third)
            states = client.read_relay_states([_query(), _query()])
            assert [state.trial.is_oversized for state in states] == [False, False]
            # Each of the others was asked about one call, and one of them then about everything.
            assert [len(batch) for batch in third.batches] == [1]
            assert [len(batch) > 1 for batch in second.batches] == [False, True]
            faults = [node.fault for node in client.nodes()]
        assert faults[0].startswith("invalid response: eth_simulateV1: the response is larger than")
        assert faults[1:] == ["", ""]
        name = client.nodes()[0].name
        assert metrics.CHAIN_WRONG_ANSWERS.take() == {f"chain_wrong_answers total {name} eth_simulateV1": 1}

    def test_a_contracts_oversized_response_costs_one_more_request_and_demotes_no_node(self) -> None:
        metrics.CHAIN_WRONG_ANSWERS.take()
        with running(self._large()) as first, running(self._large()) as second, running(_honest()) as third:
            client = _client(first, second, third)
            states = client.read_relay_states([_query(), _query(), _query()])
            assert [state.trial.is_oversized for state in states] == [True, True, True]
            assert [len(batch) for batch in second.batches] == [1]
            assert third.batches == []
            assert [node.fault for node in client.nodes()] == ["", "", ""]
        assert metrics.CHAIN_WRONG_ANSWERS.take() == {}

    def test_one_contradicting_node_does_not_discredit_two_others(self) -> None:
        with running(self._large()) as first, running(_honest()) as liar, running(self._large()) as third:
            client = _client(first, liar, third)
            (state,) = client.read_relay_states([_query()])
            assert state.trial.is_oversized
            assert [node.fault for node in client.nodes()] == ["", "", ""]

    @pytest.mark.parametrize(
        "behave",
        [
            _body(b"<html>"),
            lambda _: (503, b""),
            error(-32000, "response too large"),
            _answering("eth_simulateV1", RpcError(-32601, "no such method")),
            error(-32005, "slow down"),
        ],
        ids=["wrong", "away", "its own limit", "lacks the method", "rate limit"],
    )
    def test_an_uncontradicted_node_is_trusted(self, behave: Behaviour) -> None:
        with running(self._large()) as first, running(behave) as second:
            client = _client(first, second)
            (state,) = client.read_relay_states([_query()])
            assert state.trial.is_oversized
            assert [len(batch) for batch in second.batches] == [1]
            assert client.nodes()[0].fault == ""

    def test_an_estimate_is_confirmed_by_another_node_too(self) -> None:
        with (
            running(_answering("eth_estimateGas", "0x" + "00" * 100_000)) as liar,
            running(_honest()) as good,
        ):
            client = _client(liar, good)
            assert _estimate(client) == int(_honest().responses["eth_estimateGas"], 16)
            assert client.nodes()[0].fault.startswith("invalid response: eth_estimateGas")


class TestBatchLimits:
    """A provider that takes fewer calls at a time than we send."""

    @staticmethod
    def _limited(limit: int, refuse: Callable[[list[dict[str, Any]]], Response]) -> Behaviour:
        script = _honest()
        return lambda batch: refuse(batch) if len(batch) > limit else script(batch)

    @pytest.mark.parametrize(
        ("limit", "refuse"),
        [
            (
                100,
                lambda _: reply(
                    [{"id": 1, "error": {"code": -32600, "message": "batch limit 100 exceeded"}}]
                ),
            ),
            (50, lambda _: reply({"id": None, "error": {"code": -32600, "message": "batch too large"}})),
            (7, lambda _: reply([])),
            (1, lambda _: (413, b"")),
            (50, lambda _: (400, b"too many")),
        ],
        ids=["array", "object", "empty", "413", "400"],
    )
    def test_smaller_batches_are_sent_at_once_and_from_then_on(
        self, limit: int, refuse: Callable[[list[dict[str, Any]]], Response], caplog: pytest.LogCaptureFixture
    ) -> None:
        metrics.CHAIN_BATCH_LIMIT.take()
        hashes = ["0x" + secrets.token_hex(32) for _ in range(150)]
        with running(self._limited(limit, refuse)) as node:
            client = _client(node)
            view = client.read_chain(transaction_hashes=hashes, accounts=[_ACCOUNT], confirmations=2)
            assert set(view.receipts) == set(hashes)
            node.batches.clear()
            client.read_chain(transaction_hashes=hashes, accounts=[_ACCOUNT], confirmations=2)
            assert max(len(batch) for batch in node.batches) <= limit
            assert [health.fault for health in client.nodes()] == [""]
        logged = [text for text in caplog.messages if "calls in a batch" in text]
        learned = int(logged[-1].split()[-5])
        assert learned <= limit < 2 * learned or learned == limit
        assert (
            f"chain_batches_refused total {client.nodes()[0].name} {learned}"
            in metrics.CHAIN_BATCH_LIMIT.take()
        )

    def test_a_closed_connection_is_taken_for_a_limit_too(self, loop: Loop) -> None:
        with running(_honest()) as behind:
            proxy = NodeProxy(loop, tcp(lambda: urlsplit(behind.url).port or 0))

            async def rule(request: Any, forward: Any) -> Any:
                return None if len(request.calls) > 20 else await forward(request)

            proxy.rule = rule
            client = JsonRpcChainClient([f"http://127.0.0.1:{proxy.port}"], timeout_seconds=60)
            hashes = ["0x" + secrets.token_hex(32) for _ in range(100)]
            view = client.read_chain(transaction_hashes=hashes, accounts=[], confirmations=2)
            assert set(view.receipts) == set(hashes)
            proxy.cut()

    def test_a_node_that_refuses_everything_teaches_no_limit(self, caplog: pytest.LogCaptureFixture) -> None:
        with running(lambda batch: reply([])) as node, pytest.raises(NodeUnavailable):
            _view(_client(node))
        assert not [text for text in caplog.messages if "calls in a batch" in text]

    def test_a_limit_is_forgotten_after_a_while(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(node_module, "_LIMIT_SECONDS", 0)
        with running(self._limited(2, lambda batch: reply([]))) as node:
            client = _client(node)
            _view(client)
            node.behave = _honest()
            node.batches.clear()
            _view(client)
            assert len(node.batches) == 2


class TestPartialResponses:
    """Results in the response are kept; what is missing waits."""

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            ({"blockNumber": None, "blockHash": None}, "member blockNumber"),
            ({"effectiveGasPrice": None}, "member effectiveGasPrice"),
            ({"effectiveGasPrice": ...}, "member effectiveGasPrice is missing"),
            ({"status": ...}, "member status is missing"),
            ({"status": "0x2"}, "member status"),
            ({"gasUsed": "-0x5208"}, "member gasUsed"),
            ({"gasUsed": "0x" + "f" * 20}, "member gasUsed"),
            ({"transactionHash": "0x" + "33" * 32}, "member transactionHash"),
        ],
    )
    def test_one_odd_receipt_leaves_its_own_transaction_undecided(
        self, change: dict[str, Any], text: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        script = _honest()
        odd = {name: value for name, value in (_receipt(_HASHES[1]) | change).items() if value is not ...}
        script.responses["eth_getTransactionReceipt"] = lambda name: (
            odd if name == _HASHES[1] else _receipt(name)
        )
        with running(script) as node:
            client = _client(node)
            view = _view(client)
            assert set(view.receipts) == {_HASHES[0], _HASHES[2]}
            assert view.undecided == {_HASHES[1]}
            assert [health.fault for health in client.nodes()] == [""]
        assert [
            one for one in caplog.messages if "eth_getTransactionReceipt" in one and text.split()[1] in one
        ]

    def test_a_node_with_an_odd_receipt_has_no_vote_and_two_others_decide(self) -> None:
        script = _honest()
        script.responses["eth_getTransactionReceipt"] = lambda name: _receipt(name) | {"status": None}
        with running(script) as odd, running(_honest()) as second, running(_honest()) as third:
            view = _view(_client(odd, second, third))
        assert len(view.receipts) == 3
        assert not view.undecided

    def test_a_lagging_backends_missing_results_are_requested_again_and_the_rest_kept(self) -> None:
        rng, honest = random.Random(secrets.randbits(64)), _honest()

        def behave(batch: list[dict[str, Any]]) -> Response:
            results = json.loads(honest(batch)[1])
            behind = {"code": -32000, "message": "header not found"}
            return reply(
                [
                    {"id": one["id"], "error": behind}
                    if place > 0 and call["method"] != "eth_chainId" and rng.random() < 0.3
                    else one
                    for place, (call, one) in enumerate(zip(batch, results, strict=True))
                ]
            )

        with running(behave) as node:
            client = _client(node)
            views = [_view(client) for _ in range(20)]
        assert all(set(view.receipts) | view.undecided == set(_HASHES) for view in views)
        assert sum(len(view.receipts) for view in views) > 40
        assert sum(len(view.accounts) for view in views) > 10


@pytest.fixture
def loop() -> Iterator[Loop]:
    """The event loop of proxies."""
    loop = Loop()
    yield loop
    loop.do(asyncio.sleep(0.1))
    loop.stop()


def _is_refused(client: JsonRpcChainClient, name: str) -> bool:
    try:
        read = READS[name](client)
    except NodeUnavailable:
        return True
    return name == "send" and [outcome.kind for outcome in read] == [SendKind.UNREACHABLE]


# What names the chain, and the probe of the health check, are left out: neither decides about a call.
@pytest.mark.parametrize("name", [name for name in READS if name not in {"chain id", "code"}])
def test_a_node_that_denies_the_chain_is_not_believed_whether_or_not_it_was_checked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = _honest()
    other.responses["eth_chainId"] = hex(4202)
    with running(other) as node:
        assert _is_refused(_client(node), name)
        assert "eth_chainId" in node.methods
    with running(_honest()) as node:
        client = _client(node)
        client.node_checks().check()
        assert not _is_refused(client, name)
        # Some seconds later, another node responds at the URL.
        node.behave = other
        for one in client.pool:
            monkeypatch.setattr(one, "_same_chain_until", 0.0)
        assert _is_refused(client, name)


def test_checks_ask_for_the_chain_so_that_reads_need_not() -> None:
    with running(_honest()) as node:
        client = _client(node)
        client.node_checks().check()
        node.batches.clear()
        client.read_relay_states([_query()])
        assert "eth_chainId" not in node.methods


@pytest.mark.parametrize("count", [1, 3])
def test_every_mutation_of_a_response_raises_at_most_node_unavailable(loop: Loop, count: int) -> None:
    """With three nodes callers do not notice the one that lies."""
    seed = secrets.randbits(64)
    mutations = Mutations(random.Random(seed), share=0.7)
    with ExitStack() as parts:
        honest = [parts.enter_context(running(_honest())) for _ in range(count)]
        proxy = NodeProxy(loop, tcp(lambda: urlsplit(honest[0].url).port or 0))
        proxy.rule = mutations.rule
        urls = [f"http://127.0.0.1:{proxy.port}", *(node.url for node in honest[1:])]
        client = JsonRpcChainClient(urls, timeout_seconds=30, check_seconds=30, limits=NodeLimits(4201, 600))
        (liar, *_) = client.pool
        for name, read in list(READS.items()) * 2:
            # It is asked each time, whatever it has done before.
            liar._wrong_until = liar.backs_off_until = 0.0
            liar.guard.responded()
            client.node_checks().check()
            try:
                outcome = read(client)
            except (NodeUnavailable, CallReverted):
                assert count < 3 or name == "code", (seed, name, mutations.counts)
            except ResultTooLarge:
                # A contract may return so much, and no other node can tell.
                assert count == 1, (seed, name)
                assert name in _SIZED_BY_CONTRACT, (seed, name)
            else:
                if count == 3 and name == "send":
                    assert outcome == [SendOutcome(SendKind.ACCEPTED, "")], seed
        proxy.rule = None
        liar._wrong_until = liar.backs_off_until = 0.0
        with suppress(NodeUnavailable):
            client.head()
        client.node_checks().check()
        assert client.head().number == 100
        assert len(_view(client).receipts) == 3
        proxy.cut()
    assert sum(mutations.counts.values()) > 10
