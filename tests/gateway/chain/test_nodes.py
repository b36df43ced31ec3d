"""JSON-RPC over HTTP: batches, and the next node where one fails."""

import logging
import random
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from web3 import Web3
from web3.exceptions import ContractLogicError, Web3RPCError

from devstack.ports import free_port
from gateway.chain.client import JsonRpcChainClient
from gateway.chain.errors import NodeUnavailable
from gateway.chain.node_errors import is_call_error
from gateway.chain.nodes import Nodes
from gateway.chain.rpc import Call, RpcError
from gateway.chain.types import SendKind
from gateway.chain.web3_reads import web3_over
from gateway.common import guards
from tests.fakes.lukso import custom_error
from tests.fakes.profiles import random_address
from tests.gateway.chain.nodes import Behaviour, Node, error, reply, result, running
from tests.journeys.waiting import until

_ONE = [Call("eth_chainId", [], accepts=is_call_error)]


def _nodes(*urls: str, timeout_seconds: float = 60) -> Nodes:
    return Nodes(urls, timeout_seconds=timeout_seconds)


def _ask(nodes: Nodes, calls: list[Call] = _ONE) -> list[Any]:
    return nodes.batch(calls)


def _web3(nodes: Nodes) -> Web3:
    return web3_over(nodes.batch)


def _echo(batch: list[dict[str, Any]]) -> tuple[int, bytes]:
    results = [{"id": call["id"], "result": call["params"][0]} for call in batch]
    random.shuffle(results)
    return reply(results)


def _free_url() -> str:
    return f"http://127.0.0.1:{free_port()}"


class TestBatches:
    def test_results_are_in_the_order_of_the_calls_regardless_of_the_node(self) -> None:
        words = [secrets.token_hex(4) for _ in range(50)]
        with running(_echo) as node:
            assert _ask(_nodes(node.url), [Call("echo", [word]) for word in words]) == words
        assert len(node.batches) == 1

    def test_long_lists_go_in_pieces_of_two_hundred(self) -> None:
        numbers = list(range(450))
        with running(_echo) as node:
            assert _ask(_nodes(node.url), [Call("echo", [number]) for number in numbers]) == numbers
        assert [len(batch) for batch in node.batches] == [200, 200, 50]

    def test_without_calls_no_request_is_sent(self) -> None:
        with running(_echo) as node:
            assert _ask(_nodes(node.url), []) == []
        assert node.batches == []

    def test_one_connection_serves_many_requests(self) -> None:
        with running(result("0x1")) as node:
            nodes = _nodes(node.url)
            for _ in range(20):
                _ask(nodes)
        assert len(node.connections) == 1

    def test_a_connection_closed_by_the_node_is_reopened(self) -> None:
        with running(result("0x1")) as node:
            node.hangs_up = True
            nodes = _nodes(node.url)
            assert [_ask(nodes) for _ in range(5)] == [["0x1"]] * 5

    def test_threads_share_the_nodes_of_one_client(self) -> None:
        with running(_echo) as node, ThreadPoolExecutor(8) as threads:
            nodes = _nodes(node.url)
            batches = [[Call("echo", [secrets.token_hex(4)])] for _ in range(64)]
            replies = list(threads.map(lambda calls: _ask(nodes, calls), batches))
        assert replies == [[calls[0].params[0]] for calls in batches]

    def test_an_expected_error_is_returned_as_the_result_of_its_call(self) -> None:
        def behave(batch: list[dict[str, Any]]) -> tuple[int, bytes]:
            fields = {"code": 3, "message": "execution reverted", "data": "0x01"}
            return reply([{"id": 1, "result": "0x1"}, {"id": 2, "error": fields}])

        with running(behave) as node:
            replies = _ask(_nodes(node.url), _ONE * 2)
        assert replies == ["0x1", RpcError(3, "execution reverted", "0x01")]


class TestFailOver:
    @pytest.mark.parametrize(
        "broken",
        [
            lambda batch: (500, result("0xbad")(batch)[1]),
            lambda batch: (503, result("0xbad")(batch)[1]),
            lambda batch: (429, result("0xbad")(batch)[1]),
            lambda batch: (403, b""),
            lambda batch: reply({"error": {"code": -32600, "message": "no batches"}, "id": None}),
            lambda batch: reply([]),
            error(-32005, "limit exceeded"),
            error(-32603, "internal error"),
            error(-32000, "header not found"),
        ],
    )
    def test_after_a_fault_the_next_node_is_tried(self, broken: Behaviour) -> None:
        with running(broken) as bad, running(result("0x2a")) as good:
            assert _ask(_nodes(bad.url, good.url)) == ["0x2a"]
        assert bad.methods[:1] == good.methods == ["eth_chainId"]

    def test_after_a_timeout_the_next_node_is_tried(self) -> None:
        over = threading.Event()

        def silent(batch: list[dict[str, Any]]) -> tuple[int, bytes]:
            over.wait(120)
            return result("0xbad")(batch)

        with running(silent) as bad, running(result("0x2a")) as good:
            try:
                assert _ask(_nodes(bad.url, good.url, timeout_seconds=3)) == ["0x2a"]
            finally:
                over.set()
        assert bad.methods[:1] == good.methods == ["eth_chainId"]

    def test_a_probe_of_a_silent_node_is_short_rare_and_without_consequence(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(guards, "OPEN_SECONDS", 600)
        over = threading.Event()

        def silent(batch: list[dict[str, Any]]) -> tuple[int, bytes]:
            return result("0x2a")(batch) if over.wait(0 if len(bad.batches) > 3 else 120) else (503, b"")

        with running(silent) as bad, running(result("0x2a")) as good:
            nodes = _nodes(bad.url, good.url)
            for _ in range(6):
                with pytest.raises(NodeUnavailable):
                    nodes.probe(_ONE, timeout_seconds=0.05)
            # After three in a row, probes pause.
            until("the node has read them", lambda: len(bad.batches) >= 3)
            assert len(bad.batches) == 3
            assert good.batches == []
            assert [node.fault for node in nodes.health()] == ["", ""]
            over.set()
            # What matters asks the same node first, as before.
            assert _ask(nodes) == ["0x2a"]
            assert len(bad.batches) == 4

    def test_a_probe_returns_the_response_of_a_healthy_node(self) -> None:
        with running(result("0x2a")) as good:
            assert _nodes(good.url).probe(_ONE, timeout_seconds=60) == ["0x2a"]

    def test_after_a_refused_connection_the_next_node_is_tried(self) -> None:
        with running(result("0x2a")) as good:
            assert _ask(_nodes(_free_url(), good.url)) == ["0x2a"]

    def test_a_redirect_is_a_fault_and_followed_nowhere(self) -> None:
        with (
            running(lambda batch: (307, b"")) as bad,
            running(result("0x1")) as trap,
            running(result("0x2")) as good,
        ):
            bad.location = trap.url
            assert _ask(_nodes(bad.url, good.url)) == ["0x2"]
        assert trap.batches == []

    def test_the_first_node_is_used_while_it_is_healthy(self) -> None:
        with running(result("0x1")) as first, running(result("0x2")) as second:
            nodes = _nodes(first.url, second.url)
            assert [_ask(nodes) for _ in range(5)] == [["0x1"]] * 5
        assert second.batches == []

    def test_a_failed_node_is_tried_last_for_a_while(self) -> None:
        with running(error(-32005, "limit")) as bad, running(result("0x2")) as good:
            nodes = _nodes(bad.url, good.url)
            for _ in range(5):
                assert _ask(nodes) == ["0x2"]
            assert len(bad.batches) == 1
            bad.behave, good.behave = result("0x1"), error(-32005, "limit")
            assert _ask(nodes) == ["0x1"]

    def test_without_a_healthy_node_the_error_is_retryable(self) -> None:
        with running(error(-32005, "limit")) as node, pytest.raises(NodeUnavailable) as refused:
            _ask(_nodes(node.url, _free_url()))
        assert (refused.value.code, refused.value.status) == ("chain-unavailable", 503)
        assert refused.value.retryable
        assert refused.value.retry_after == 2

    def test_urls_with_their_keys_are_in_no_log_and_no_refusal(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        with running(error(-32005, "limit")) as node, pytest.raises(NodeUnavailable) as refused:
            _ask(_nodes(node.url))
        key = node.url.rsplit("/", 1)[1]
        ours = "".join(record.getMessage() for record in caplog.records if record.name.startswith("gateway"))
        assert f"{urlsplit(node.url).netloc} failed" in ours
        assert key not in ours + refused.value.detail + str(refused.value.members)


class TestSending:
    def test_after_a_rate_limit_the_next_node_gets_the_bytes(self) -> None:
        with running(error(-32005, "limit")) as bad, running(result("0x" + "ab" * 32)) as good:
            client = JsonRpcChainClient([bad.url, good.url], timeout_seconds=60)
            (outcome,) = client.send_raw_transactions([b"\x02\x01"])
        assert outcome.kind is SendKind.ACCEPTED
        assert good.batches[0][0]["params"] == bad.batches[0][0]["params"] == ["0x0201"]

    def test_every_node_gets_the_bytes_and_one_that_takes_them_is_enough(self) -> None:
        with running(error(-32000, "insufficient funds")) as first, running(result("0x1")) as second:
            client = JsonRpcChainClient([first.url, second.url], timeout_seconds=60)
            (outcome,) = client.send_raw_transactions([b"\x02"])
        assert outcome.kind is SendKind.ACCEPTED
        assert first.methods == second.methods == ["eth_sendRawTransaction"]

    def test_without_a_node_every_transaction_is_unreachable_and_nothing_is_raised(self) -> None:
        client = JsonRpcChainClient([_free_url()], timeout_seconds=1)
        outcomes = client.send_raw_transactions([b"\x02"] * 3)
        assert [outcome.kind for outcome in outcomes] == [SendKind.UNREACHABLE] * 3

    def test_a_node_that_fails_midway_keeps_accepted_calls_and_the_rest_are_unreachable(self) -> None:
        node: Node

        def dies_after_one(batch: list[dict[str, Any]]) -> tuple[int, bytes]:
            return result("0x1")(batch) if len(node.batches) == 1 else reply({}, status=502)

        with running(dies_after_one) as node:
            client = JsonRpcChainClient([node.url], timeout_seconds=60)
            kinds = [outcome.kind for outcome in client.send_raw_transactions([b"\x02"] * 250)]
        assert kinds == [SendKind.ACCEPTED] * 100 + [SendKind.UNREACHABLE] * 150
        assert len(node.batches) == 2


class TestWeb3Provider:
    def test_web3_reads_over_the_nodes_and_its_next_node(self) -> None:
        with running(error(-32005, "limit")) as bad, running(result("0x1069")) as good:
            assert _web3(_nodes(bad.url, good.url)).eth.chain_id == 4201
        assert bad.methods == good.methods == ["eth_chainId"]

    def test_a_json_rpc_error_becomes_web3s_error(self) -> None:
        with (
            running(error(-32601, "no such method")) as node,
            pytest.raises(Web3RPCError, match="no such method"),
        ):
            _ = _web3(_nodes(node.url)).eth.chain_id

    def test_a_contract_makes_web3_fetch_no_url(self) -> None:
        lookup = custom_error(
            "OffchainLookup(address,string[],bytes,bytes4,bytes)",
            *(random_address(), ["http://127.0.0.1:1/{sender}/{data}"], b"", bytes(4), b""),
        )
        fields = {"code": 3, "message": "execution reverted", "data": "0x" + lookup.hex()}
        with (
            running(lambda batch: reply([{"id": call["id"], "error": fields} for call in batch])) as node,
            pytest.raises(ContractLogicError, match="execution reverted"),
        ):
            _web3(_nodes(node.url)).eth.call({"to": Web3.to_checksum_address(random_address())})
        assert node.methods == ["eth_call"]

    @pytest.mark.parametrize("behave", [error(-32601, "no"), result(None), result("first"), result([1])])
    def test_an_unreadable_chain_id_is_node_unavailable(self, behave: Behaviour) -> None:
        with running(behave) as node, pytest.raises(NodeUnavailable):
            JsonRpcChainClient([node.url], timeout_seconds=60).chain_id()
