"""Fixtures of every test: real PostgreSQL, Redis and chain, started once per run and stopped after it."""

import gc
import os
import random
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.conf import settings
from django.db import connections
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from psycopg.conninfo import conninfo_to_dict
from pytest_django import DjangoDbBlocker
from xdist.scheduler import LoadFileScheduling

from devstack.services.postgres import APPLICATION_ROLE
from devstack.services.stack import Services, start_services
from devstack.services.template import TEMPLATE
from gateway.admin import middleware
from gateway.celery import app as celery_app
from gateway.chain import client as chain_client
from gateway.chain.config import read_again
from gateway.common import metrics
from tests import staff
from tests.database import OWNER, connect_as, keep_first_rows, pooled

_LONG_HEX = re.compile("[0-9a-fA-F]{20}")
# No test is about speed: on a busy machine any example may take its time, and so may thinking of one.
hypothesis_settings.register_profile(
    "unhurried",
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
        # Tests roll back between examples themselves, or make new rows for each.
        HealthCheck.function_scoped_fixture,
    ],
)
hypothesis_settings.load_profile("unhurried")
# Tests choose other values in each run, the same ones in all processes of a run, and those of an earlier run with its
# seed. Keys and other secrets are never the same.
_SEED = os.environ.setdefault("TEST_SEED", secrets.token_hex(4))
# For random choices while tests are collected.
random.seed(_SEED)
# A test takes a second, and one that speaks to real processes some minutes.
_DAY_SECONDS, _BEFORE_MIDNIGHT_SECONDS, _JOURNEY_SECONDS = 86_400, 30, 200
# A test makes many objects that end with it; to look for cycles among them seldom is enough.
_GARBAGE = (20_000, 10, 10)


class _Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """A file's tests stay together, and all journeys do: to start the service once takes long enough."""

    def _split_scope(self, nodeid: str) -> str:
        path = super()._split_scope(nodeid)
        return "journeys" if path.startswith("tests/journeys/") else str(path)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Scheduling:
    """Divide the tests between the workers of `make test`."""
    return _Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what mostly waits for other processes, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("journey") is None)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over modules and tests, which stay: it looks at the rest more cheaply."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let what each test chooses, and the fixtures that it is the first to need, depend on no test before it."""
    random.seed(f"{_SEED} {item.nodeid}")


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name random values by their argument: every worker rolls its own, and tests must be called the same in all."""
    is_random = (
        isinstance(val, bytes)
        or (isinstance(val, str) and _LONG_HEX.search(val) is not None)
        or (isinstance(val, int) and (argname == "seed" or val > 10**6))
    )
    return argname if is_random else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seed that chooses the same values again."""
    terminalreporter.write_line(f"Chosen at random with TEST_SEED={_SEED}.")


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Yield the running servers; the chain mines a block for each transaction it is sent."""
    with start_services(tmp_path_factory.mktemp("services"), block_time=None, durable=False) as running:
        settings.REDIS_URL = running.redis_url
        settings.CACHES["figures"]["LOCATION"] = running.redis_url
        settings.CHAIN_RPC_URLS = [running.rpc_url]
        read_again()
        yield running


@pytest.fixture(scope="session")
def django_db_modify_db_settings(services: Services) -> None:
    """Point Django's connection to the server of this run, before pytest-django creates the test database."""
    address = conninfo_to_dict(services.database_url)
    database = connections["default"].settings_dict
    database.update(HOST=address["host"], USER=address["user"], PORT="", PASSWORD="", NAME="gateway")
    database["TEST"]["TEMPLATE"] = TEMPLATE


@pytest.fixture(scope="session")
def django_db_setup(
    services: Services, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """
    Restore the migrations' rows after each transactional test, instead of sending `post_migrate` again.

    The tests connect as the processes of the service do; the owner only creates the database, and drops it.
    """
    with django_db_blocker.unblock():
        keep_first_rows()
        with pooled(services):
            connect_as(APPLICATION_ROLE)
            yield
        connect_as(OWNER)


@pytest.fixture(scope="module")
def owner_connection(django_db_setup: None) -> Iterator[None]:
    """The module's tests are connected as the owner, for tools of the development stack that are the owner's."""
    connect_as(OWNER)
    yield
    connect_as(APPLICATION_ROLE)


@pytest.fixture(autouse=True, scope="module")
def _no_reporter_of_another_module() -> Iterator[None]:
    """End the thread that reports the counts of a process, if a module has started it: it takes what tests read."""
    yield
    metrics.reporter().stop()


@pytest.fixture(autouse=True)
def _real_chain_client_by_default() -> Iterator[None]:
    """Take away the fake that a test installed."""
    yield
    chain_client.set_chain_client(None)


@pytest.fixture(scope="session", autouse=True)
def _staff_who_look_around_are_seldom_noted() -> Iterator[None]:
    """Tests count a page's statements; one that takes long must not meet the write that tells of its reader."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(middleware, "STEP_SECONDS", 600)
        yield


@pytest.fixture(autouse=True)
def _begins_and_ends_on_one_day(request: pytest.FixtureRequest) -> None:
    """Begin no test right before midnight in UTC: what it does and what it looks at are of the same day then."""
    left = _DAY_SECONDS - time.time() % _DAY_SECONDS
    is_journey = request.node.get_closest_marker("journey") is not None
    if left < (_JOURNEY_SECONDS if is_journey else _BEFORE_MIDNIGHT_SECONDS):
        time.sleep(left)


@pytest.fixture
def broker_away() -> Iterator[None]:
    """A Celery application whose broker does not respond is the current one."""
    away = Celery("away", broker="redis://127.0.0.1:1/0", set_as_current=True)
    # Our own application gives up at once, too; Celery's usual waits for seconds.
    away.conf.broker_transport_options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    yield
    celery_app.set_current()


@pytest.fixture(scope="session")
def description() -> Any:
    """The OpenAPI document; only to be read."""
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


@pytest.fixture
def short_sidebar() -> Iterator[None]:
    """Leave the links to all lists out of the admin's pages."""
    with staff.short_sidebar():
        yield


@pytest.fixture
def pictures() -> Path | None:
    """Return the folder that SCREENSHOTS names for pictures; None where it is not set."""
    named = os.environ.get("SCREENSHOTS")
    return Path(named) if named else None
