"""One stack for every test of this folder that only reads or adds."""

from collections.abc import Iterator

import pytest

from devstack.services.stack import Services, start_services


@pytest.fixture(scope="package")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Yield running services; every transaction is mined at once."""
    with start_services(tmp_path_factory.mktemp("stack"), block_time=None, durable=False) as running:
        yield running
