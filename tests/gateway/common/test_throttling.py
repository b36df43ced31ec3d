"""Rate limits count callers in Redis; without Redis some close and some stay open."""

import secrets
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import RequestFactory
from pytest_django import Settings
from rest_framework.request import Request
from rest_framework.views import APIView

from devstack.services.stack import Services
from gateway.common.errors import ServiceUnavailable
from gateway.common.throttling import NetworkRate, RateLimit


class Open(RateLimit):
    """Lets requests pass while Redis is away."""

    setting = "RELAY_READ_RATE"


class Closed(Open):
    """Refuses requests while Redis is away."""

    fails_closed = True


class ByNetwork(NetworkRate):
    """Counts callers by their network."""

    setting = "RELAY_READ_RATE"


def request_of(pk: str) -> Any:
    request = Request(RequestFactory().get("/"))
    request.user = SimpleNamespace(pk=pk, is_authenticated=True)  # type: ignore[assignment]
    return request


def test_a_caller_gets_as_many_requests_as_the_rate_says(services: Services, settings: Settings) -> None:
    settings.RELAY_READ_RATE = "3/minute"
    request = request_of(secrets.token_hex())

    assert [Open().allow_request(request, APIView()) for _ in range(5)] == [True] * 3 + [False] * 2


def test_callers_are_counted_apart(services: Services, settings: Settings) -> None:
    settings.RELAY_READ_RATE = "1/minute"

    assert all(Open().allow_request(request_of(secrets.token_hex()), APIView()) for _ in range(3))


def test_a_refusal_says_how_long_to_wait(services: Services, settings: Settings) -> None:
    settings.RELAY_READ_RATE = "1/minute"
    request, throttle = request_of(secrets.token_hex()), Open()
    Open().allow_request(request, APIView())
    assert not throttle.allow_request(request, APIView())

    assert 1 <= throttle.wait() <= 61


def test_without_redis_an_open_limit_lets_pass_and_a_closed_one_refuses(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert Open().allow_request(request_of("1"), APIView())
    with pytest.raises(ServiceUnavailable):
        Closed().allow_request(request_of("1"), APIView())


def test_a_network_is_counted_whoever_signs_in_from_it(services: Services, settings: Settings) -> None:
    settings.RELAY_READ_RATE = "1/minute"
    first, second, elsewhere = (request_of(secrets.token_hex()) for _ in range(3))
    network = f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}"
    first.META["REMOTE_ADDR"], second.META["REMOTE_ADDR"] = f"{network}::1", f"{network}::2"
    elsewhere.META["REMOTE_ADDR"] = "203.0.113.9"

    assert [ByNetwork().allow_request(request, APIView()) for request in (first, second)] == [True, False]
    assert ByNetwork().identify(elsewhere, APIView()) == "203.0.113.9"


def test_a_network_is_refused_while_nothing_can_be_counted(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    with pytest.raises(ServiceUnavailable):
        ByNetwork().allow_request(request_of("1"), APIView())
