"""What a signer's journal tells beside the chain, and the table of the trials."""

import sqlite3
from pathlib import Path

import pytest

from devstack.rpc import Rpc
from devstack.services.server import ServerFailed
from devstack.signing import KeyPlace
from lab.chaos import signers
from lab.chaos.journals import Signed, compare_journal, read_journal
from lab.chaos.signers import Trial, table
from lab.chaos.traffic import Traffic
from lab.chaos.verifier import Chain, Mined
from signer.journal import Journal, Slot
from signer.policy import Entry, Kind

_RELAYER = "0x" + "Aa" * 20


def _call(nonce: int, name: str, *, content: bytes = b"one") -> Signed:
    return Signed(_RELAYER, nonce, "call", content, name)


def _self_transfer(nonce: int, name: str) -> Signed:
    return Signed(_RELAYER, nonce, "self-transfer", b"own", name)


def _chain(*hashes: str, used_up: int | None = None) -> Chain:
    chain = Chain(Rpc("http://127.0.0.1:1"))
    for nonce, name in enumerate(hashes):
        chain.by_nonce[_RELAYER.lower(), nonce] = Mined(name, True, 21_000)
    if used_up is not None:
        chain.others.add(hashes[used_up])
    return chain


def test_calls_that_are_not_made_any_more_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signers, "START_SECONDS", 0.1)
    traffic = Traffic("http://127.0.0.1:1", Rpc("http://127.0.0.1:1"), [])

    with pytest.raises(ServerFailed, match="no more calls are made"):
        signers._until(traffic, 1)


def test_a_signed_transaction_on_the_chain_is_correct() -> None:
    signed = [_call(0, "0x1"), _call(0, "0x2"), _call(1, "0x3", content=b"two")]
    result = compare_journal(signed, _chain("0x2", "0x3"))
    assert (result.signatures, result.account_nonces, result.signed_anew, result.wrong) == (3, 2, 0, [])


def test_a_call_may_be_signed_again_if_its_first_account_nonce_was_used() -> None:
    signed = [_call(0, "0x1"), _self_transfer(0, "0x2"), _call(1, "0x3")]
    result = compare_journal(signed, _chain("0x2", "0x3", used_up=0))
    assert (result.signed_anew, result.wrong) == (1, [])


@pytest.mark.parametrize(
    ("signed", "hashes", "wrong"),
    [
        ([_call(0, "0x1"), _call(0, "0x2", content=b"two")], ["0x1"], "2 calls are signed on"),
        ([_call(0, "0x1"), _call(1, "0x2")], ["0x1", "0x2"], "is signed on"),
        ([_call(0, "0x1"), _call(1, "0x2", content=b"two")], ["0x1"], "is not on the chain"),
        ([_call(0, "0x1")], ["0x7"], "which is not in the journal"),
        ([_call(0, "0x1")], ["0x1", "0x2"], "is on the chain and not in the journal"),
    ],
)
def test_a_signed_transaction_missing_on_the_chain_is_wrong(
    signed: list[Signed], hashes: list[str], wrong: str
) -> None:
    (line,) = compare_journal(signed, _chain(*hashes)).wrong
    assert wrong in line


def test_the_journal_is_read_as_the_signer_writes_it(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal"))
    for kind in (Kind.CALL, Kind.TRANSFER):
        entry = Entry(kind, b"digest" + kind.encode(), b"one", 5, 21_000, b"signature", "0x1")
        journal.record([(Slot(_RELAYER, 4201, 0), entry)], now=1.0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        read_journal(tmp_path / "journal")
    journal.close()
    assert read_journal(tmp_path / "journal") == [_call(0, "0x1")]


def test_the_table_shows_the_overhead_over_local_keys() -> None:
    lines = table({KeyPlace.LOCAL: Trial(accept_ms=40.0), KeyPlace.KMS: Trial(accept_ms=52.0)})
    assert "| 52 ms | +12 ms |" in lines.splitlines()[-1]
