"""Chaos: what the verifier finds, what the proxies read, and a few faults on a real stack."""

import json
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from devstack.chaos.points import POINTS
from devstack.chaos.postgres_proxy import Frames
from devstack.chaos.proxies import Side
from devstack.chaos.results import Results, Row, table
from devstack.chaos.run import Options, run
from devstack.chaos.verifier import Acknowledged, Chain, Mined, Verdict, judge
from devstack.rpc import Rpc

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
) -> Verdict:
    chain, verdict = Chain(Rpc("http://127.0.0.1:1")), Verdict()
    chain.calls[call.key] = list(mined)
    if used_up:
        chain.by_nonce[_RELAYER, 7] = Mined(_OTHER_HASH, True, 21_000)
        chain.others.add(_OTHER_HASH)
    judge(call, chain, {_HASH: row} if row else {}, verdict, credit_wei=10)
    return verdict


def test_a_call_that_is_on_the_chain_once_and_charged_its_gas_is_right() -> None:
    assert not _judged(_row("Success", charged=5, entries=1), Mined(_HASH, True, 41)).wrong
    assert not _judged(_row("Failed", charged=5, entries=1), Mined(_HASH, False, 41)).wrong
    assert not _judged(_row("Success", charged=100, entries=1), Mined(_HASH, True, 2_000)).wrong


def test_a_call_that_was_cancelled_is_right_where_the_chain_proves_it() -> None:
    assert not _judged(_row("Cancelled", charged=0, entries=0), used_up=True).wrong
    assert _judged(_row("Cancelled", charged=0, entries=0)).lost


def test_a_call_that_was_never_answered_may_be_nowhere_but_not_without_a_row() -> None:
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
def test_what_the_chain_does_not_prove_is_lost(row: dict[str, Any] | None, mined: list[Mined]) -> None:
    assert len(_judged(row, *mined).lost) == 1


def test_a_call_that_is_on_the_chain_twice_is_doubled() -> None:
    twice = [Mined(_HASH, True, 41), Mined(_OTHER_HASH, False, 30)]
    assert len(_judged(_row("Success", charged=5, entries=1), *twice).doubled) == 1


@pytest.mark.parametrize(("charged", "entries"), [(4, 1), (6, 1), (5, 2), (0, 0)])
def test_any_other_charge_than_the_gas_is_wrong(charged: int, entries: int) -> None:
    row = _row("Success", charged=charged, entries=entries)
    assert len(_judged(row, Mined(_HASH, True, 41)).charged_wrongly) == 1


def test_messages_of_postgresql_are_passed_on_whole() -> None:
    frames = Frames(begins_untyped=True)
    start, query = b"\0\0\0\x08abcd", b"Q\0\0\0\x0bSELECT\0"
    assert frames.feed(start[:6]) == b""
    assert frames.feed(start[6:] + query[:3]) == start
    assert frames.feed(query[3:] + query) == query + query
    assert frames.frames == [(b"Q", b"SELECT\0")] * 2


def test_a_point_is_a_statement_inside_its_transaction() -> None:
    point = next(point for point in POINTS if point.name == "accept before the commit")
    taken = ["BEGIN", "SELECT relay_store_calls($1)"]
    assert point.matches(doing="COMMIT", during=taken, side=Side.BEFORE)
    assert not point.matches(doing="COMMIT", during=taken, side=Side.AFTER)
    assert not point.matches(doing="COMMIT", during=["BEGIN"], side=Side.BEFORE)


def test_results_are_added_up_over_runs(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "results.json"
    for recovery, lost in ((3.0, 0), (1.0, 1)):
        Results(path).add("a fault", Row(times=1, calls=9, lost=lost, recoveries=[recovery]))
    (row,) = Results(path).rows.values()
    assert (row.times, row.calls, row.lost, row.recoveries) == (2, 18, 1, [1.0, 3.0])
    assert "| a fault | 2 | 0 | 18 | 1 | 0 | 0 | 0 | 3.0 s (3.0 s) | 0 ms |" in table([("a fault", row)])


@pytest.mark.journey
def test_nothing_is_lost_by_a_few_faults(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    faults, results = ["kill accept after the commit"], tmp_path / "results.json"
    status = run(Options(faults, minutes=3, times=1, results=results))
    assert status == 0, capfd.readouterr().out
    rows = json.loads(results.read_text())
    assert [(name, row["times"]) for name, row in rows.items()] == [(name, 1) for name in faults]
    assert all(row["calls"] > 0 for row in rows.values())
