"""Every process goes by the database's clock, and a host whose own clock differs is reported."""

import random
import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import redis as driver
import time_machine
from django.db import OperationalError, connection
from django.utils import timezone
from prometheus_client.core import Metric
from pytest_django import Settings

from devstack.services.stack import Services
from gateway.chain.client import JsonRpcChainClient
from gateway.chain.nodes import NodeLimits
from gateway.common import clock
from gateway.common.clock import Clock, ClockChecks
from users.models import RefreshToken, SignInChallenge, SignInSession
from webhooks.models import Endpoint, Message, Notice

pytestmark = pytest.mark.django_db(transaction=True)
NEAR = timedelta(seconds=30)


@pytest.fixture(autouse=True)
def right_again(db: None) -> Iterator[None]:
    """Have this process measure once more after the test, by the right time of its host."""
    yield
    ClockChecks().check()
    assert abs(clock.now() - timezone.now()) < NEAR


@pytest.mark.parametrize("seconds", [-600, 90])
def test_a_host_with_a_wrong_clock_has_the_right_time_once_it_has_measured(seconds: int) -> None:
    true = timezone.now()
    with time_machine.travel(true + timedelta(seconds=seconds)):
        assert abs(clock.now() - true) > NEAR
        ClockChecks().check()
        assert abs(clock.now() - true) < NEAR


def test_a_new_process_measures_before_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    true = timezone.now()
    monkeypatch.setattr(clock, "_clock", Clock())
    # A thread that is slow to start.
    monkeypatch.setattr(ClockChecks, "run", lambda self: self._stopping.wait())
    with time_machine.travel(true + timedelta(seconds=random.choice([-600, 600]))):
        clock.start()
        try:
            assert abs(clock.now() - true) < NEAR
        finally:
            clock.stop()


def test_rows_made_on_a_host_with_a_wrong_clock_have_the_right_time() -> None:
    true = timezone.now()
    with time_machine.travel(true + timedelta(seconds=random.choice([-600, 600]))):
        ClockChecks().check()
        session, message = SignInSession(), Message()
        times = [
            *(
                session.created_at,
                session.refreshed_at,
                RefreshToken().created_at,
                SignInChallenge().issued_at,
            ),
            *(message.created_at, message.next_attempt_at, Notice().created_at, Endpoint().enabled_at),
        ]
    assert all(abs(moment - true) < NEAR for moment in times)


def test_a_small_difference_is_left_as_it_is() -> None:
    own_clock = Clock()
    own_clock.correction = timedelta(seconds=5)
    # A busy machine may be slow at any single one.
    while own_clock.measure() is None:
        pass
    assert own_clock.correction == timedelta(0)


def test_a_measurement_that_takes_long_or_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    own_clock = Clock()
    own_clock.correction = timedelta(seconds=5)
    with monkeypatch.context() as patched:
        patched.setattr(clock, "only_row", _slow)
        assert own_clock.measure() is None
        patched.setattr(clock, "only_row", _away)
        ClockChecks().check()
        with pytest.raises(OperationalError):
            own_clock.measure()
    assert own_clock.correction == timedelta(seconds=5)


def _slow(*_: object) -> tuple[float]:
    time.sleep(1.1)
    return (0.0,)


def _away(*_: object) -> tuple[float]:
    raise OperationalError("away")


def test_the_clock_difference_of_each_host_is_a_gauge_until_the_host_is_removed(
    services: Services, settings: Settings
) -> None:
    with driver.Redis.from_url(services.redis_url) as client:
        client.delete("gateway:clocks")
    seconds = random.randrange(100, 600)
    with time_machine.travel(timezone.now() + timedelta(seconds=seconds)):
        ClockChecks().check()
        assert abs(_ahead()[socket.gethostname()] - seconds) < NEAR.total_seconds()
    with time_machine.travel(timezone.now() + timedelta(seconds=seconds, minutes=6)):
        assert _ahead() == {}
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert _ahead() == {}


def _ahead() -> dict[str, float]:
    (family,) = clock.skews()
    return _values(family)


def _values(family: Metric) -> dict[str, Any]:
    return {sample.labels["host"]: sample.value for sample in family.samples}


def test_a_host_that_is_ahead_does_not_take_the_nodes_for_stopped(services: Services) -> None:
    services.rpc.call("evm_mine")
    client = JsonRpcChainClient(
        [services.rpc_url], timeout_seconds=60, check_seconds=60, limits=NodeLimits(max_head_age_seconds=300)
    )
    # Tests may have moved the time of the chain ahead.
    client.node_checks().check()
    (node,) = client.nodes()
    with time_machine.travel(timezone.now() + timedelta(days=365)):
        client.node_checks().check()
        assert client.nodes()[0].fault == "its newest block is too old"
        ClockChecks().check()
        client.node_checks().check()
        assert client.nodes()[0].fault == node.fault == ""
    connection.close()
