"""One running service for all journeys; each finds it whole."""

import random
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import running_browser
from tests.journeys.chain import GWEI
from tests.journeys.people import Person
from tests.journeys.stack import Stack, running_stack


@pytest.fixture(scope="session")
def started_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Yield the running service; after all journeys its books are recomputed and compared."""
    with running_stack(tmp_path_factory.mktemp("journeys")) as stack:
        yield stack
        assert stack.reconciles()


@pytest.fixture
def stack(started_stack: Stack) -> Iterator[Stack]:
    """Yield the running service at some price of gas; what the test breaks is mended after it."""
    started_stack.chain.price_next_block(random.randint(GWEI // 2, 2 * GWEI))
    yield started_stack
    started_stack.mend()


@pytest.fixture
def person(stack: Stack) -> Person:
    """A signed-in user with a million credits."""
    return stack.newcomer()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Yield the running browser; one for all tests of this folder."""
    with running_browser() as running:
        yield running
