"""What runs at length, at a toy size: the ledger machine starts, judges and ends well."""

import random
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from devstack import preparation
from devstack.services.stack import Services
from lab import ledger_machine

pytestmark = pytest.mark.journey


@pytest.fixture
def emptied(services: Services) -> Iterator[Services]:
    """Yield services without rows, and leave none behind."""
    services.empty_database()
    yield services
    services.empty_database()


def test_the_ledger_machine_makes_its_runs(
    emptied: Services, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(preparation, "start_services", lambda *_, **__: nullcontext(emptied))
    seed = random.randrange(2**32)
    assert ledger_machine.run_machine(runs=2, steps=5, seed=seed) == 0
    assert "✓ 2 runs" in capfd.readouterr().out
