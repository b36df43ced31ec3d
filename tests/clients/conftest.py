"""The service that the Python package's tests talk to."""

from collections.abc import Iterator

import pytest

from tests.clients.fake_service import FakeService, served


@pytest.fixture
def service() -> Iterator[FakeService]:
    """The service at an address of its own."""
    with served() as fake:
        yield fake
