"""Processes of another commit on the servers of this one's stack."""

import json
import re
import sys
from collections.abc import Mapping

from devstack.django_process import run_django
from devstack.files import PROJECT
from devstack.preparation import Prepared
from devstack.processes import GatewayProcess
from lab.bench.stack import Checkout, search_path

_PREFIX = "DEVSTACK_"
_UNLIMITED = "60000000/minute"


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
    """Return the variables as the commit reads them: before `devstack.settings`, each setting had its own."""
    environment = {**environment, "PYTHONPATH": search_path(checkout.folder)}
    if (checkout.tools / "devstack" / "settings.py").exists():
        return environment
    rates = re.findall(r'env\.rate\("(\w+)"', (checkout.folder / "gateway" / "settings.py").read_text())
    overridden = {
        name.removeprefix(_PREFIX): str(json.loads(text))
        for name, text in environment.items()
        if name.startswith(_PREFIX)
    }
    own = {
        "DJANGO_SETTINGS_MODULE": "gateway.settings",
        "WEBHOOK_ALLOW_HTTP": "True",
        "WEBHOOK_ALLOW_LOOPBACK": "True",
    }
    return {**environment, **dict.fromkeys(rates, _UNLIMITED), **overridden, **own}
