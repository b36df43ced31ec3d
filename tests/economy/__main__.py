"""The machine's own process, with the service's settings and an empty database: `RUNS STEPS SEED`."""

import os
import sys

import django
from django.core.management import call_command

# Runs at low priority, in the background.
_NICENESS = 10


def main(runs: int, steps: int, seed: int) -> None:
    """Run the machine; the first difference between rows and model is raised, with the shortest run that shows it."""
    os.nice(_NICENESS)
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    from tests.economy.running import run

    run(runs=runs, steps=steps, seed=seed)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
