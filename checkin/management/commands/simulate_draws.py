"""`manage.py simulate_draws TABLE`: does a table drop what the admin says?"""

import secrets
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from checkin.models import DropTable
from checkin.queries import items_of
from checkin.services.simulating import Simulation, simulate

# A fair table stays within these but for one run in a hundred, and a few in a hundred thousand.
_LEAST_P_VALUE = 0.01
_MOST_STANDARD_ERRORS = 4
_MOST_INDEX_ERROR = 0.005


class Command(BaseCommand):
    help = "Draw many times from a drop table and compare with its odds; exit 1 where chance does not explain it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("table", type=int, help="id of a drop table, a draft or not")
        parser.add_argument("--draws", type=int, default=1_000_000)
        parser.add_argument("--seed", help="32 bytes in hex, to repeat a run; random by default")

    def handle(self, *args: Any, **options: Any) -> None:
        table = DropTable.objects.filter(pk=options["table"]).first()
        if table is None:
            raise CommandError(f"There is no drop table {options['table']}.")
        items = items_of([table])
        if not items or options["draws"] < 1:
            raise CommandError("There is nothing to draw.")
        try:
            seed = bytes.fromhex(options["seed"] or secrets.token_hex(32))
        except ValueError as error:
            raise CommandError("Give the seed in hex.") from error
        found = simulate(items=items, draws=options["draws"], seed=seed)
        self.stdout.write(f"{table}: {options['draws']} draws with seed {seed.hex()}")
        self._show(found)
        strange = (
            found.p_value <= _LEAST_P_VALUE
            or abs(found.index - 1) > _MOST_INDEX_ERROR
            or any(abs(tally.standard_errors) > _MOST_STANDARD_ERRORS for tally in found.tallies)
        )
        if strange:
            raise CommandError("Chance does not explain this. Repeat with another seed.", returncode=1)

    def _show(self, found: Simulation) -> None:
        self.stdout.write(f"chi-square of the items {found.chi_square:.2f}, p = {found.p_value:.4f}")
        for tally in found.tallies:
            self.stdout.write(
                f"{tally.odds.drop_type}: {float(tally.odds.probability):.2%} of draws,"
                f" expected {float(tally.odds.expected):.6f} per draw, was {tally.mean:.6f}"
                f" ({tally.error:+.3%}, {tally.standard_errors:+.2f} standard errors)"
            )
        self.stdout.write(f"all types alike: expected 1, was {found.index:.6f} ({found.index - 1:+.3%})")
