"""Chaos: what the verifier finds, what the proxies read, and two faults on a real stack."""

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from django.apps import apps
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from devstack.files import PROJECT
from devstack.rpc import Rpc
from devstack.services.server import ServerFailed
from lab.chaos import node_faults, stack
from lab.chaos.faults import FAULTS
from lab.chaos.http_proxy import Message, Rule, answer
from lab.chaos.others import slowed
from lab.chaos.points import CANCELLATION_POINTS, POINTS, REPLACEMENT_POINTS
from lab.chaos.postgres_proxy import Frames
from lab.chaos.proxies import Side
from lab.chaos.results import Results, Row, by_action, shared, table
from lab.chaos.run import Options, run
from lab.chaos.verifier import Acknowledged, Chain, Mined, Result, compare, judge
from tests.docs.test_alerts import RULES

_RELAYER, _KEY_MANAGER = "0x" + "aa" * 20, to_checksum_address("0x" + "bb" * 20)
_HASH, _OTHER_HASH = "0x" + "01" * 32, "0x" + "02" * 32
_CALL = Acknowledged(_KEY_MANAGER, 5 << 128, b"payload", _HASH)
_UNANSWERED = Acknowledged(_KEY_MANAGER, 5 << 128, b"payload", None)


def _row(status: str, *, charged: int, entries: int, amount: int = 100) -> dict[str, Any]:
    return {
        "status": status,
        "charged": charged,
        "entries": entries,
        "amount": amount,
        "relayer": _RELAYER,
        "account_nonce": 7,
    }


def _judged(
    row: dict[str, Any] | None, *mined: Mined, call: Acknowledged = _CALL, used_up: bool = False
) -> Result:
    chain, result = Chain(Rpc("http://127.0.0.1:1")), Result()
    chain.calls[call.key] = list(mined)
    if used_up:
        chain.by_nonce[_RELAYER, 7] = Mined(_OTHER_HASH, True, 21_000)
        chain.others.add(_OTHER_HASH)
    judge(call, chain, {_HASH: row} if row else {}, result, credit_wei=10)
    return result


def test_a_call_that_is_on_the_chain_once_and_charged_its_gas_is_right() -> None:
    assert not _judged(_row("Success", charged=5, entries=1), Mined(_HASH, True, 41)).wrong
    assert not _judged(_row("Failed", charged=5, entries=1), Mined(_HASH, False, 41)).wrong
    assert not _judged(_row("Success", charged=100, entries=1), Mined(_HASH, True, 2_000)).wrong


def test_a_cancelled_call_is_correct_if_the_chain_proves_it() -> None:
    assert not _judged(_row("Cancelled", charged=0, entries=0), used_up=True).wrong
    assert _judged(_row("Cancelled", charged=0, entries=0)).lost


def test_a_call_without_a_response_may_be_missing_but_not_executed_without_a_row() -> None:
    assert not _judged(None, call=_UNANSWERED).wrong
    assert _judged(None, Mined(_HASH, True, 41), call=_UNANSWERED).lost


@pytest.mark.parametrize(
    ("row", "mined"),
    [
        (None, []),
        (_row("Success", charged=5, entries=1), []),
        (_row("Submitted", charged=0, entries=0), [Mined(_HASH, True, 0)]),
        (_row("Failed", charged=5, entries=1), [Mined(_HASH, True, 41)]),
        (_row("Success", charged=5, entries=1), [Mined(_HASH, False, 41)]),
    ],
)
def test_a_call_without_proof_on_the_chain_is_lost(row: dict[str, Any] | None, mined: list[Mined]) -> None:
    assert len(_judged(row, *mined).lost) == 1


def test_a_call_that_is_on_the_chain_twice_is_doubled() -> None:
    twice = [Mined(_HASH, True, 41), Mined(_OTHER_HASH, False, 30)]
    assert len(_judged(_row("Success", charged=5, entries=1), *twice).doubled) == 1


@pytest.mark.parametrize(("charged", "entries"), [(4, 1), (6, 1), (5, 2), (0, 0)])
def test_any_other_charge_than_the_gas_is_wrong(charged: int, entries: int) -> None:
    row = _row("Success", charged=charged, entries=entries)
    assert len(_judged(row, Mined(_HASH, True, 41)).charged_wrongly) == 1


def test_a_server_that_is_not_restarted_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, nothing = mock.Mock(has_ended=True), mock.Mock()
    ended.name = "redis"
    monkeypatch.setattr(stack, "START_SECONDS", 0.1)
    services = mock.Mock(servers=[ended])

    with pytest.raises(ServerFailed, match="redis was not restarted"):
        stack.Stack(services, nothing, nothing, nothing, {}, nothing).wait_for("redis")


def test_expected_income_counts_each_promise_once() -> None:
    row = {"name": "in_1", "given": 50, "worth": 50}
    cases: list[tuple[dict[str, int | None], list[dict[str, Any]], tuple[str, ...]]] = [
        ({"in_1": 50}, [row], ()),
        ({"in_1": None}, [row], ()),
        ({"in_1": 50}, [], ("lost",)),
        ({"in_1": 50}, [row, row], ("doubled",)),
        ({}, [row], ("doubled",)),
        ({"in_1": 51}, [row], ("charged_wrongly",)),
        ({"in_1": None}, [{**row, "given": 49}], ("charged_wrongly",)),
    ]
    for promised, rows, wrong in cases:
        result = Result()
        compare("invoice", promised, rows, result)
        lists = ("lost", "doubled", "charged_wrongly")
        assert tuple(name for name in lists if getattr(result, name)) == wrong


def _through(rule: Rule, *calls: dict[str, Any]) -> tuple[list[str], list[dict[str, Any]] | None]:
    """Return the methods that reach the node, and what the client gets; None if its connection is cut."""
    reached: list[str] = []

    async def forward(request: Message) -> Message:
        reached.extend(call["method"] for call in request.calls)
        results = {"eth_blockNumber": "0x64", "eth_getTransactionCount": "0x7"}
        return answer(
            "200 OK",
            [
                {"id": call["id"], "result": results.get(call["method"], call.get("params"))}
                for call in request.calls
            ],
        )

    body = json.dumps(calls).encode()
    request = Message(b"POST / HTTP/1.1\r\ncontent-length: %d" % len(body), body)
    answered = asyncio.run(rule(request, forward))
    return reached, None if answered is None else answered.calls


_SEND = {"id": 1, "method": "eth_sendRawTransaction", "params": ["0x01"]}
_COUNT = {"id": 2, "method": "eth_getTransactionCount", "params": ["0xaa", "latest"]}


def test_a_node_is_cut_off_before_or_after_it_has_taken_a_transaction() -> None:
    assert _through(node_faults.cut_before_sending, _SEND) == ([], None)
    assert _through(node_faults.cut_after_sending, _SEND) == (["eth_sendRawTransaction"], None)
    assert _through(node_faults.cut_before_sending, _COUNT)[0] == ["eth_getTransactionCount"]


def test_a_lost_broadcast_is_acknowledged_and_not_forwarded() -> None:
    reached, answered = _through(node_faults.lost_broadcast, _SEND, _COUNT)
    assert reached == ["eth_getTransactionCount"]
    assert [one["id"] for one in answered or []] == [1, 2]
    assert answered is not None
    assert answered[0]["result"] == "0x" + keccak(b"\x01").hex()


def test_a_refused_transaction_is_accepted_when_resent() -> None:
    rule = node_faults.refusing("transaction underpriced", once=True)
    reached, answered = _through(rule, _SEND)
    error = {"code": -32000, "message": "transaction underpriced"}
    assert (reached, answered) == ([], [{"jsonrpc": "2.0", "id": 1, "error": error}])
    assert _through(rule, _SEND)[0] == ["eth_sendRawTransaction"]


def test_a_node_lies_about_account_nonces() -> None:
    _, answered = _through(node_faults.changed(node_faults.moved_nonces(-9)), _COUNT)
    assert answered == [{"id": 2, "result": "0x0"}]


def test_a_lagging_node_responds_for_an_old_block() -> None:
    request = {"id": 3, "method": "eth_getBalance", "params": ["0xaa", "latest"]}
    reached, answered = _through(node_faults.behind, request)
    assert reached == ["eth_blockNumber", "eth_getBalance"]
    assert answered == [{"id": 3, "result": ["0xaa", hex(50)]}]


def test_the_points_of_an_action_are_one_row_of_the_table() -> None:
    rows = {
        "kill accept before x": Row(times=1),
        "kill accept after x": Row(times=2),
        "redis: killed": Row(times=4),
    }
    added = by_action(rows)
    assert [(name, row.times) for name, row in added.items()] == [
        ("kill -9: accept (2 points)", 3),
        ("redis: killed", 4),
    ]


def test_messages_of_postgresql_are_passed_on_whole() -> None:
    frames = Frames(begins_untyped=True)
    start, query = b"\0\0\0\x08abcd", b"Q\0\0\0\x0bSELECT\0"
    assert frames.feed(start[:6]) == b""
    assert frames.feed(start[6:] + query[:3]) == start
    assert frames.feed(query[3:] + query) == query + query
    assert frames.frames == [(b"Q", b"SELECT\0")] * 2


def test_a_point_is_a_statement_inside_its_transaction() -> None:
    point = next(point for point in POINTS if point.name == "accept before the commit")
    taken = ["BEGIN", "SELECT relay_insert_calls($1)"]
    assert point.matches(doing="COMMIT", during=taken, side=Side.BEFORE)
    assert not point.matches(doing="COMMIT", during=taken, side=Side.AFTER)
    assert not point.matches(doing="COMMIT", during=["BEGIN"], side=Side.BEFORE)


def test_the_statements_at_which_a_process_is_killed_are_in_the_code() -> None:
    code = "\n".join(
        path.read_text()
        for package in ("users", "credits", "rewards", "earnings", "relay", "payments")
        for suffix in ("py", "sql")
        for path in (PROJECT / package).rglob(f"*.{suffix}")
    )
    tables = {model._meta.db_table for model in apps.get_models()}
    for point in [*POINTS, *REPLACEMENT_POINTS, *CANCELLATION_POINTS]:
        for words in filter(None, (point.doing, point.during)):
            # What the ORM writes is in no file.
            by_orm = re.fullmatch(r'INSERT INTO "(\w+)"', words)
            is_there = by_orm[1] in tables if by_orm else words in code
            assert is_there or words == "COMMIT" or point.server != "postgres", point.name


def _answered(profile: str, *, began: float, seconds: float) -> Any:
    wallet = SimpleNamespace(profile_address=profile)
    return SimpleNamespace(wallet=wallet, began_at=began, answered_at=seconds and began + seconds)


def test_the_slowdown_is_the_median_of_concurrent_responses() -> None:
    before = [_answered("one", began=at, seconds=0.1) for at in (2, 3, 4)]
    meanwhile = [_answered("one", began=11, seconds=0.3), _answered("two", began=12, seconds=0.3)]
    never = [_answered("three", began=12, seconds=0)]

    found = slowed([*before, *meanwhile, *never], since=1, began=10, ended=20)

    assert (round(found.factor), found.held_up) == (3, 1)
    assert found.wrong(most_held_up=1) == ["others are slowed: 0.100 s before, 0.300 s meanwhile"]
    assert found.wrong(most_held_up=0)[1:] == ["no call of 1 profiles was accepted"]
    assert not slowed([*before, _answered("one", began=11, seconds=0.15)], since=1, began=10, ended=20).wrong(
        most_held_up=0
    )


def test_every_sign_of_a_fault_is_the_metric_of_its_alert() -> None:
    rules = {rule["alert"]: rule["expr"] for rule in RULES}
    for sign in filter(None, (fault.sign for fault in FAULTS.values())):
        assert sign.metric in rules[sign.alert]


def test_results_are_added_up_over_runs(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "results.json"
    for recovery, lost in ((3.0, 0), (1.0, 1)):
        Results(path).add("a fault", Row(times=1, calls=9, lost=lost, recoveries=[recovery]))
    (row,) = Results(path).rows.values()
    assert (row.times, row.calls, row.lost, row.recoveries) == (2, 18, 1, [1.0, 3.0])
    assert "| a fault | 2 | 0 | 18 | 0 | 0 | 1 | 0 | 0 | 0 | 3.0 s (3.0 s) | 0 ms | 0 ms |" in table(
        {"a fault": row}
    )


def test_faults_under_one_load_share_its_calls_and_none_of_its_damage_is_counted_twice() -> None:
    trial = Row(calls=5, income=2, lost=1, recoveries=[4.0], wrong=["a call is lost"])
    rows = shared(trial, {"kill a": 7, "kill b": 8})
    assert [(row.times, row.in_flight, row.calls, row.income, row.lost) for row in rows.values()] == [
        (1, 7, 3, 1, 1),
        (1, 8, 2, 1, 0),
    ]
    assert rows["kill a"].wrong == ["one of kill a, kill b:", "a call is lost"]
    assert shared(trial, {"kill a": 7})["kill a"].wrong == ["a call is lost"]


@pytest.mark.journey
@pytest.mark.timeout(3_600)
def test_nothing_is_lost_by_two_faults(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    faults = ["kill accept after the commit", "postgres: immediate shutdown"]
    results = tmp_path / "results.json"
    status = run(Options(faults, minutes=50, times=1, results=results))
    assert status == 0, capfd.readouterr().out
    rows = json.loads(results.read_text())
    assert [(name, row["times"]) for name, row in rows.items()] == [(name, 1) for name in sorted(faults)]
    assert all(row["calls"] > 0 for row in rows.values())
