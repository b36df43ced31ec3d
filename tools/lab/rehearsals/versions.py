"""Processes of another commit on the servers of this one's stack."""

import sys
from collections.abc import Mapping

from devstack.django_process import run_django
from devstack.files import PROJECT
from devstack.preparation import Prepared
from devstack.processes import GatewayProcess
from lab.bench.stack import Checkout, search_path


def seed(prepared: Prepared, checkout: Checkout) -> None:
    """Have the other commit make the tables and the demo data, as `Prepared.seed` does."""
    run_django(
        prepared.directory / "log" / "demo.log",
        _environment(prepared.owner_environment, checkout),
        *("-m", "devstack.demo.seed", str(prepared.directory / "demo.json")),
        folder=checkout.folder,
        python=str(checkout.python),
    )


def run_from(process: GatewayProcess, checkout: Checkout, environment: Mapping[str, str]) -> None:
    """Run the other commit's code from the next start on; every process gets all variables that web gets."""
    process.directory, process.python = checkout.folder, str(checkout.python)
    process.environment = _environment(environment, checkout)


def run_from_here(process: GatewayProcess, environment: Mapping[str, str]) -> None:
    """Run this commit's code from the next start on."""
    process.directory, process.python, process.environment = PROJECT, sys.executable, environment


def _environment(environment: Mapping[str, str], checkout: Checkout) -> dict[str, str]:
    """Return the variables with which Python imports the commit's own packages of tools/."""
    return {**environment, "PYTHONPATH": search_path(checkout.folder)}
