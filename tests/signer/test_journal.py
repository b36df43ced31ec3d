"""The journal stays small: what the chain has used long ago is forgotten, and nothing is signed on it again."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from signer.__main__ import Pruning
from signer.chains import ServedChain
from signer.journal import Journal
from signer.messages import Outcome
from signer.service import SigningService
from signer.targets import NodeTargets, NodeUnavailable, Trust
from signer.transactions import PolicyViolation, SignedTransaction
from tests.gateway.chain.nodes import reply, running
from tests.signer.parts import (
    CHAIN_ID,
    POLICY,
    Clock,
    FakeTargets,
    new_keys,
    new_service,
    relay_call,
    self_transfer,
)

_DAY = 86_400


@pytest.fixture
def targets() -> FakeTargets:
    return FakeTargets()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(tmp_path: Path, targets: FakeTargets, clock: Clock) -> SigningService:
    return new_service(tmp_path, new_keys(), targets, clock=clock)


def _is_refused(outcome: Outcome) -> bool:
    return isinstance(outcome, PolicyViolation) and outcome.refusal == "nonce-used"


def test_long_final_entries_are_deleted_and_their_account_nonces_stay_closed(
    tmp_path: Path, service: SigningService, targets: FakeTargets, clock: Clock
) -> None:
    relayer, other, _ = service.keys().relayers
    target = targets.key_manager()
    calls = [relay_call(relayer, target, account_nonce=nonce) for nonce in range(6)]
    kept = relay_call(other, target)
    service.sign([*calls[:4], kept])
    clock.now += 31 * _DAY
    # Account nonce 2 has something young, and of the others nothing is on the chain.
    service.sign([self_transfer(relayer, account_nonce=2), *calls[4:]])
    targets.used = {relayer: 6}
    assert service.prune(CHAIN_ID, days=30) == 2
    assert service.prune(CHAIN_ID, days=30) == 0
    assert service.signed_ever() == 8
    journal = service.journal
    journal.close()
    again = new_service(tmp_path, service.keyring, targets, clock=clock)
    replayed = again.sign([*calls[:2], self_transfer(relayer, account_nonce=1)])
    assert all(map(_is_refused, replayed))
    for call in (calls[2], calls[5], kept):
        assert isinstance(again.sign([call])[0], SignedTransaction)
    assert again.signed_ever() == 8


def test_many_entries_are_deleted_in_steps_and_the_file_stops_growing(
    tmp_path: Path, targets: FakeTargets, clock: Clock
) -> None:
    journal = Journal(str(tmp_path / "small"), prune_step=10)
    service = SigningService(new_keys(), [ServedChain(POLICY, targets)], journal, clock=clock)
    relayer = service.keys().relayers[0]
    target, sizes = targets.key_manager(), []
    for begin in range(0, 200, 50):
        calls = [relay_call(relayer, target, account_nonce=begin + nonce) for nonce in range(50)]
        service.sign(calls)
        clock.now += 31 * _DAY
        targets.used = {relayer: begin + 50}
        # The newest entry stays until the next time.
        assert service.prune(CHAIN_ID, days=30) == (49 if begin == 0 else 50)
        sizes.append(service.journal_bytes())
    assert sizes[1] == sizes[-1]


def test_without_a_node_nothing_is_deleted_and_signing_continues(
    service: SigningService, targets: FakeTargets
) -> None:
    targets.is_away = True
    Pruning(service, days=30).prune()
    assert isinstance(service.sign([self_transfer(service.keys().relayers[0])])[0], SignedTransaction)


@pytest.mark.parametrize(
    "answers", [[hex(CHAIN_ID), None], [hex(CHAIN_ID), "ten"], [None, "0x1"], ["LUKSO", "0x1"]]
)
def test_a_node_without_a_final_block_or_a_valid_number_decides_nothing(
    answers: list[str | None],
) -> None:
    targets = NodeTargets("http://127.0.0.1:1", chain_id=CHAIN_ID, key_managers=[], profiles=[])
    with patch.object(NodeTargets, "batch", return_value=answers), pytest.raises(NodeUnavailable):
        targets.used_nonces(["0x" + "aa" * 20])


@pytest.mark.parametrize(
    "answers", [["LUKSO", "0x", "0x"], [hex(CHAIN_ID), "0xcode", "0x"], [hex(CHAIN_ID), None, "0x"]]
)
def test_without_chain_id_and_code_from_the_node_a_contract_is_unknown(
    answers: list[str | None],
) -> None:
    targets = NodeTargets("http://127.0.0.1:1", chain_id=CHAIN_ID, key_managers=[], profiles=[])
    with patch.object(NodeTargets, "batch", side_effect=[answers, ["0x"]]), pytest.raises(NodeUnavailable):
        targets.trust_of(["0x" + "aa" * 20])


def test_a_result_that_is_not_an_address_names_no_profile() -> None:
    targets = NodeTargets("http://127.0.0.1:1", chain_id=CHAIN_ID, key_managers=[], profiles=[])
    address, word = "0x" + "aa" * 20, "0x" + "zz" * 32
    with patch.object(NodeTargets, "batch", side_effect=[[hex(CHAIN_ID), "0x60", word], ["0x"]]):
        assert targets.trust_of([address]) == {address: Trust.NONE}


@pytest.mark.parametrize(
    ("code", "message", "trusts"),
    [
        (-32005, "daily request count exceeded", []),
        (-32000, "header not found", []),
        (-32603, "Internal error", []),
        (3, "execution reverted", [Trust.NONE]),
        (-32000, "invalid opcode: INVALID", [Trust.NONE]),
    ],
)
def test_a_contract_is_refused_only_if_it_fails_itself_and_not_if_the_node_does(
    code: int, message: str, trusts: list[Trust]
) -> None:
    address = "0x" + "aa" * 20

    def answer(call: dict[str, Any]) -> dict[str, Any]:
        if call["method"] == "eth_call":
            return {"id": call["id"], "error": {"code": code, "message": message}}
        if call["method"] == "eth_chainId":
            return {"id": call["id"], "result": hex(CHAIN_ID)}
        return {"id": call["id"], "result": "0x60" if call["params"][0] == address else "0x"}

    with running(lambda batch: reply([answer(call) for call in batch])) as node:
        targets = NodeTargets(node.url, chain_id=CHAIN_ID, key_managers=[], profiles=[])
        assert list(targets.trust_of([address]).values()) == trusts
