"""The bench of costly callers: its arithmetic and its contracts."""

import pytest

from lab.bench.hostile import CALLERS, CONTRACTS, Round, creation_code, figures_of


def _round(settled: float, **answers: int) -> Round:
    return Round(settled, 1.0, 9.0, 2.0, 3.0, {}, answers)


def test_the_loss_compares_medians_and_responses_are_summed() -> None:
    alone = [_round(100), _round(90), _round(500)]
    beside = [_round(85, accepted=2), _round(10, refused=1), _round(85, accepted=3)]

    figures = figures_of(alone, beside)

    assert figures["lost"] == pytest.approx(0.15)
    assert figures["settled_per_second"] == [100, 85]
    assert figures["attacker"] == {"accepted": 5, "refused": 1}


def test_without_settlements_nothing_is_lost() -> None:
    assert figures_of([_round(0)], [_round(0)])["lost"] == 0.0


def test_there_are_eleven_callers_and_each_contract_is_deployed_as_written() -> None:
    assert len(CALLERS) == 11
    for code in CONTRACTS.values():
        deployed = bytes.fromhex(code)
        created = creation_code(code)
        assert (created[1], created[4], created[11:]) == (len(deployed), 11, deployed)
