"""`python -m lab stripe-mock`: does Stripe accept every request of the adapter, and respond as the double does?"""

import json
import os
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import django
import urllib3

from devstack.console import echo
from devstack.files import TOOLS
from devstack.ports import free_port
from devstack.services.server import Server, status_of
from devstack.services.stripe_double import StripeDouble
from lab.stripe_mock.recording import Exchange
from lab.stripe_mock.shapes import differences, shapes_of

_INSTALL = "go install github.com/stripe/stripe-mock@latest"
_EXPLAINED = TOOLS / "stripe_double" / "README.md"


@dataclass(frozen=True)
class Options:
    """The path of the program; empty for the one on the PATH."""

    program: str


class StripeMock(Server):
    """stripe-mock: checks requests against Stripe's OpenAPI description, and responds with fixtures."""

    name = "stripe-mock"

    def __init__(self, program: str, folder: Path) -> None:
        super().__init__(folder, folder)
        self._program, self._port = program, free_port()

    def command(self) -> list[str]:
        return [self._program, "-http-port", str(self._port)]

    def answers(self) -> bool:
        return status_of(f"{self.url}/v1/customers") == 401

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def repeat(self, exchange: Exchange) -> Exchange:
        """Send the same request here."""
        query = f"?{exchange.query}" if exchange.query else ""
        headers = {"Authorization": "Bearer sk_test_123", "Content-Type": "application/x-www-form-urlencoded"}
        response = urllib3.request(
            exchange.method,
            f"{self.url}{exchange.path}{query}",
            body=exchange.body or None,
            headers=headers,
            retries=False,
        )
        result = json.loads(response.data)
        return Exchange(
            exchange.method, exchange.path, exchange.query, exchange.body, response.status, result
        )


def run(options: Options) -> int:
    """Send everything to both, and print uncovered, refused and different requests; return 0 if there are none."""
    program = options.program or shutil.which("stripe-mock")
    if program is None:
        echo(f"stripe-mock is not on the PATH. Install it: GOBIN=/tmp/bin {_INSTALL}")
        return 2
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from lab.stripe_mock.calls import Calls

    with tempfile.TemporaryDirectory(prefix="stripe-mock-") as name:
        folder = Path(name)
        with StripeDouble(folder / "double", folder).running() as double:
            calls = Calls(double)
            calls.run()
        sent = list(
            {(one.method, one.path, one.parameters): one for one in calls.recorder.exchanges}.values()
        )
        with StripeMock(program, folder).running() as mock:
            responses = [mock.repeat(exchange) for exchange in sent]
    refused = [_line(one) for one in responses if not 200 <= one.status < 300]
    kinds = Counter(_operation(one) for one in sent)
    differ = differences(
        shapes_of([one.answer for one in sent if one.status == 200]),
        shapes_of([one.answer for one in responses]),
    )
    explained = _explained(differ)
    _print("not sent", calls.missed())
    _print("refused", refused)
    _print("differs", [line for line in differ if line not in explained])
    echo(
        f"{len(sent)} requests of {len(kinds)} operations: {len(refused)} refused; "
        f"{len(differ)} differences, {len(explained)} of them explained"
    )
    return int(bool(calls.missed() or refused or len(explained) < len(differ)))


def _explained(lines: list[str]) -> list[str]:
    """Return the differences that the double's README explains: by a member, or by the start of its name and `*`."""
    names = re.findall(r"^\| `([\w.\[\]* ]+)` \|", _EXPLAINED.read_text(), re.MULTILINE)
    patterns = [re.escape(name).replace(r"\*", ".*") for name in names]
    return [line for line in lines if any(re.fullmatch(rule, line.split(":")[0]) for rule in patterns)]


def _print(title: str, lines: list[str]) -> None:
    for line in lines:
        echo(f"{title}: {line}")


def _operation(exchange: Exchange) -> str:
    return (
        f"{exchange.method} {re.sub(r'/[a-z]+_[A-Za-z0-9]{8,}|/credits-[0-9a-f]+', '/{id}', exchange.path)}"
    )


def _line(exchange: Exchange) -> str:
    error = exchange.answer.get("error", {}).get("message", "")
    return f"{exchange.method} {exchange.path} {exchange.parameters}: {exchange.status} {error}"
