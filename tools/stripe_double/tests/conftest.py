"""One double for the package, reset before each test."""

import os
import secrets
from collections.abc import Callable, Iterator

import pytest

from accounts import VERIFIED_KEY, DoubleAccount
from double_process import DoubleProcess
from stripe_double.client import ControlClient
from webhook_receiver import WebhookReceiver, receive_webhooks


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report whether the contract tests ran against Stripe."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    if any("tests/contract/" in getattr(report, "nodeid", "") for report in reports):
        alone = f"the double alone; {VERIFIED_KEY} is not set"
        ran = "the double and Stripe itself" if VERIFIED_KEY in os.environ else alone
        terminalreporter.write_line(f"Stripe contract: ran on {ran}.")


@pytest.fixture(scope="session")
def webhook_server() -> Iterator[WebhookReceiver]:
    """Yield an endpoint for webhooks."""
    with receive_webhooks(f"whsec_{secrets.token_hex(24)}") as webhooks:
        yield webhooks


@pytest.fixture(scope="session")
def running_double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoubleProcess]:
    """Yield the process that the tests share."""
    with DoubleProcess(tmp_path_factory.mktemp("stripe")).running() as double:
        yield double


@pytest.fixture
def double(running_double: DoubleProcess) -> DoubleProcess:
    """Return the double without any resource, sending no webhooks."""
    running_double.controls.set_webhook_endpoint(None, "")
    running_double.controls.reset()
    return running_double


@pytest.fixture
def controls(double: DoubleProcess) -> ControlClient:
    """Return the client of the double's control API."""
    return double.controls


@pytest.fixture
def webhooks(double: DoubleProcess, webhook_server: WebhookReceiver) -> WebhookReceiver:
    """Return an endpoint that the double sends every event to."""
    webhook_server.clear()
    double.controls.set_webhook_endpoint(webhook_server.url, webhook_server.secret)
    return webhook_server


@pytest.fixture
def account(double: DoubleProcess) -> DoubleAccount:
    """Return the double's account."""
    return DoubleAccount(double)


@pytest.fixture
def amount() -> int:
    """Return a random amount."""
    return 500 + secrets.randbelow(20_000)


@pytest.fixture
def key() -> Callable[[], str]:
    """Return a maker of idempotency keys."""
    return lambda: secrets.token_hex(16)
