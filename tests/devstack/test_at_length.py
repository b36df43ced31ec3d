"""What runs at length, at toy sizes: stress test and ledger machine start, judge and end well."""

import random
from contextlib import nullcontext

import pytest

from devstack import ledger_machine
from devstack.ad_networks import stress
from devstack.services.stack import Services

pytestmark = pytest.mark.journey


@pytest.fixture(autouse=True)
def _on_an_empty_database(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each begin on the servers of the run: what they would start for themselves takes the most time."""
    services.empty_database()
    for module in (stress, ledger_machine):
        monkeypatch.setattr(module, "start_services", lambda *_, **__: nullcontext(services))


def test_the_stress_test_ends_with_the_balances_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert stress.run_stress(postbacks=200, processes=2, users=8) == 0
    printed = capsys.readouterr().out
    assert "200 postbacks from 2 processes" in printed
    assert "✓ every balance and experience is the model's" in printed


def test_the_ledger_machine_makes_its_runs(capfd: pytest.CaptureFixture[str]) -> None:
    seed = random.randrange(2**32)
    assert ledger_machine.run_machine(runs=2, steps=5, seed=seed) == 0
    assert "✓ 2 runs" in capfd.readouterr().out
