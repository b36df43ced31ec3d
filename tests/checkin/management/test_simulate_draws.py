"""`manage.py simulate_draws TABLE`: figures for a table, and an exit code."""

import secrets
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from checkin.models import DropTable
from checkin.queries import items_of
from checkin.services.simulating import simulate
from rewards.models import BadgeTrack
from tests.checkin.items import item
from tests.checkin.rows import draft_table, lowest

pytestmark = pytest.mark.django_db
_SEED = "5eed" * 16


def run(table: DropTable, **options: Any) -> str:
    """Run the command and return what it prints."""
    out = StringIO()
    call_command("simulate_draws", table.pk, stdout=out, **options)
    return out.getvalue()


def test_the_figures_are_those_of_the_simulation() -> None:
    table = DropTable.objects.order_by("id")[0]
    text = run(table, draws=5_000, seed=_SEED)
    found = simulate(items=items_of([table]), draws=5_000, seed=bytes.fromhex(_SEED))
    assert f"p = {found.p_value:.4f}" in text
    for tally in found.tallies:
        assert f"expected {float(tally.odds.expected):.6f} per draw, was {tally.mean:.6f}" in text
    assert _SEED in text


def test_a_run_without_a_seed_tells_the_one_it_took() -> None:
    one = [item("CREDITS", least=Decimal(5), most=Decimal(5))]
    table = draft_table(lowest(BadgeTrack.PERMANENT), one)
    texts = {run(table, draws=1) for _ in range(3)}
    assert len(texts) == 3


def test_too_few_draws_for_the_values_exit_1() -> None:
    wide = [item("CREDITS", least=Decimal(1), most=Decimal(10**6))]
    table = draft_table(lowest(BadgeTrack.PERMANENT), wide)
    with pytest.raises(CommandError, match="Chance does not explain") as stopped:
        run(table, draws=1, seed=_SEED)
    assert stopped.value.returncode == 1


@pytest.mark.parametrize("seed", ["seed", "5ee", "5éed"])
def test_a_seed_that_is_not_hex_is_refused(seed: str) -> None:
    with pytest.raises(CommandError, match="seed in hex"):
        run(DropTable.objects.order_by("id")[0], draws=1, seed=seed)


@pytest.mark.parametrize("draws", [0, -1])
def test_no_draws_show_nothing(draws: int) -> None:
    with pytest.raises(CommandError, match="nothing to draw"):
        run(DropTable.objects.order_by("id")[0], draws=draws)


def test_a_table_that_is_not_there_or_empty_is_refused() -> None:
    with pytest.raises(CommandError, match="no drop table"):
        call_command("simulate_draws", 10**9 + secrets.randbelow(10**6))
    with pytest.raises(CommandError, match="nothing to draw"):
        run(draft_table(lowest(BadgeTrack.PERMANENT), []))
