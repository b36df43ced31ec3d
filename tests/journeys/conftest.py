"""One running service for all journeys; each finds it whole."""

from collections.abc import Iterator

import pytest

from tests.journeys.people import Person
from tests.journeys.stack import Stack, running_stack


@pytest.fixture(scope="package")
def started_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Yield the running service."""
    with running_stack(tmp_path_factory.mktemp("journeys")) as stack:
        yield stack


@pytest.fixture(scope="module", autouse=True)
def _every_credit_is_explained(started_stack: Stack) -> Iterator[None]:
    """Recompute the whole ledger from its rows after each file's journeys."""
    yield
    assert started_stack.reconciles()


@pytest.fixture
def stack(started_stack: Stack) -> Iterator[Stack]:
    """Yield the running service; what the test breaks is mended after it."""
    yield started_stack
    started_stack.mend()


@pytest.fixture
def person(stack: Stack) -> Person:
    """Somebody who has signed in, with a million credits."""
    return stack.newcomer()
