"""The servers of the run, with nothing at the Stripe double."""

import pytest

from devstack.services.stack import Services


@pytest.fixture(scope="package")
def services(services: Services) -> Services:
    """Return running services; every transaction is mined at once."""
    services.stripe.controls.set_webhook_endpoint(None, "")
    services.stripe.controls.reset()
    return services
