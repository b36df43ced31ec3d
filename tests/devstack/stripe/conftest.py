"""One double for the package, fresh for each test; Stripe itself too where a test key is given."""

import os
import secrets
from collections.abc import Callable, Iterator

import pytest
import stripe

from devstack.services.stripe_double import StripeDouble
from devstack.stripe.client import ControlClient
from tests.conftest import STRIPE_TEST_KEY
from tests.devstack.stripe.mailbox import Mailbox, open_mailbox
from tests.devstack.stripe.worlds import DoubleWorld, StripeWorld, World

_STRIPES = ["double", "stripe"] if STRIPE_TEST_KEY in os.environ else ["double"]


@pytest.fixture(scope="package")
def mailbox_server() -> Iterator[Mailbox]:
    """Yield an endpoint for webhooks."""
    with open_mailbox(f"whsec_{secrets.token_hex(24)}") as mailbox:
        yield mailbox


@pytest.fixture(scope="package")
def double_server(
    tmp_path_factory: pytest.TempPathFactory, mailbox_server: Mailbox
) -> Iterator[StripeDouble]:
    """Yield a running double with random keys."""
    directory = tmp_path_factory.mktemp("stripe")
    with StripeDouble(directory / "data", directory).running() as double:
        yield double


@pytest.fixture
def double(double_server: StripeDouble) -> StripeDouble:
    """Return the double without anything in it, sending no webhooks."""
    for endpoint in DoubleWorld(double_server).v1.webhook_endpoints.list().data:
        DoubleWorld(double_server).v1.webhook_endpoints.delete(endpoint.id)
    double_server.controls.reset()
    return double_server


@pytest.fixture
def controls(double: StripeDouble) -> ControlClient:
    """Return what steers the double."""
    return double.controls


@pytest.fixture
def mailbox(double: StripeDouble, mailbox_server: Mailbox) -> Mailbox:
    """Return an empty endpoint that the double sends every event to."""
    mailbox_server.clear()
    double.controls.set_webhook_endpoint(mailbox_server.url, mailbox_server.secret)
    return mailbox_server


@pytest.fixture
def here(double: StripeDouble) -> DoubleWorld:
    """Return the world of the double."""
    return DoubleWorld(double)


@pytest.fixture(params=_STRIPES)
def world(request: pytest.FixtureRequest) -> World:
    """Return each world that the contract holds for."""
    if request.param == "stripe":
        return StripeWorld(os.environ[STRIPE_TEST_KEY])
    return DoubleWorld(request.getfixturevalue("double"))


@pytest.fixture
def stripe_client(world: World) -> stripe.StripeClient:
    """Return the SDK's client of the world."""
    return world.client


@pytest.fixture
def amount() -> int:
    """Return an amount that no test can know beforehand."""
    return 500 + secrets.randbelow(20_000)


@pytest.fixture
def key() -> Callable[[], str]:
    """Return a maker of idempotency keys."""
    return lambda: secrets.token_hex(16)
