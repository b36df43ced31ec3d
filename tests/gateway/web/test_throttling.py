"""Rate limits count callers in Redis; without Redis some close and some stay open."""

import secrets
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import RequestFactory
from pytest_django import Settings
from rest_framework.request import Request
from rest_framework.views import APIView

from devstack.services.stack import Services
from gateway.common import redis_urls
from gateway.common.errors import ServiceUnavailable
from gateway.web import throttling
from gateway.web.throttling import NetworkRate, RateLimit


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


def test_a_caller_gets_the_configured_number_of_requests(services: Services, settings: Settings) -> None:
    settings.RELAY_READ_RATE = "3/minute"
    request = request_of(secrets.token_hex())

    assert [Open().allow_request(request, APIView()) for _ in range(5)] == [True] * 3 + [False] * 2


def test_callers_are_counted_apart(services: Services, settings: Settings) -> None:
    settings.RELAY_READ_RATE = "1/minute"

    assert all(Open().allow_request(request_of(secrets.token_hex()), APIView()) for _ in range(3))


def test_a_refusal_has_retry_after(services: Services, settings: Settings) -> None:
    settings.RELAY_READ_RATE = "1/minute"
    request, throttle = request_of(secrets.token_hex()), Open()
    Open().allow_request(request, APIView())
    assert not throttle.allow_request(request, APIView())

    assert 1 <= throttle.wait() <= 61


def test_without_redis_an_open_limit_admits_and_a_closed_one_refuses(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert Open().allow_request(request_of("1"), APIView())
    with pytest.raises(ServiceUnavailable):
        Closed().allow_request(request_of("1"), APIView())


def test_a_network_is_counted_across_all_its_sign_ins(services: Services, settings: Settings) -> None:
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


def test_a_hanging_redis_is_waited_for_once_and_retried_a_second_later(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock: SimpleNamespace = SimpleNamespace(now=1.0, monotonic=lambda: clock.now, time=time.time)
    monkeypatch.setattr(throttling, "time", clock)
    monkeypatch.setattr(redis_urls, "PATIENCE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        settings.REDIS_URL = f"redis://127.0.0.1:{hanging.getsockname()[1]}/0"
        requests = redis_requests_of(throttling._counter(settings.REDIS_URL))

        assert all(Open().allow_request(request_of("1"), APIView()) for _ in range(4))
        with pytest.raises(ServiceUnavailable):
            Closed().allow_request(request_of("1"), APIView())
        assert len(requests) == 1

        clock.now += 1.1
        with ThreadPoolExecutor(8) as callers:
            assert all(callers.map(lambda _: Open().allow_request(request_of("1"), APIView()), range(8)))
        assert len(requests) == 2


def test_requests_are_counted_again_once_redis_is_back(services: Services, settings: Settings) -> None:
    settings.RELAY_READ_RATE = "1/minute"
    request = request_of(secrets.token_hex())
    counter = throttling._Counter(services.redis_url)
    rate = throttling._rate(settings.RELAY_READ_RATE)
    counter._retry_at = time.monotonic() - 1

    assert counter.count(rate, "RELAY_READ_RATE", str(request.user.pk)) is None
    assert counter._retry_at == 0
    assert counter.count(rate, "RELAY_READ_RATE", str(request.user.pk)) is not None


@pytest.mark.parametrize("processes", [1, 3])
def test_of_a_large_rate_hits_are_counted_in_packets_and_no_more_than_the_rate_pass(
    services: Services, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate, caller = throttling._rate("400/hour"), secrets.token_hex()
    monkeypatch.setattr(throttling, "PACKET_SECONDS", 600.0)
    counters = [throttling._Counter(services.redis_url) for _ in range(processes)]
    requests = [redis_requests_of(counter) for counter in counters]
    passed = sum(
        counters[place % processes].count(rate, "RELAY_READ_RATE", caller, in_packets=True) is None
        for place in range(450)
    )
    assert passed == 400
    # A packet is four hits; after the rate is used up, each hit takes two requests.
    request_count = sum(len(of_process) for of_process in requests)
    assert 100 <= request_count <= 100 + 2 * 50 + 2 * 4 * processes


def test_unused_requests_of_a_packet_expire(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "PACKET_SECONDS", -1.0)
    rate, caller = throttling._rate("400/hour"), secrets.token_hex()
    counter = throttling._Counter(services.redis_url)
    passed = sum(counter.count(rate, "RELAY_READ_RATE", caller, in_packets=True) is None for _ in range(150))
    assert passed == 100


def test_a_limit_that_fails_closed_counts_every_request(services: Services, settings: Settings) -> None:
    settings.AUTH_NONCE_RATE = "400/hour"
    caller = secrets.token_hex()
    counter = throttling._counter(settings.REDIS_URL)
    throttling.check_rate("AUTH_NONCE_RATE", caller)
    assert ("AUTH_NONCE_RATE", caller) not in counter._packets._left


def redis_requests_of(counter: throttling._Counter) -> list[object]:
    """Return a list that grows by an item with each request of this counter to Redis."""
    hit = counter._limiter.hit
    requests: list[object] = []

    def counted(*arguments: Any, **options: Any) -> Any:
        requests.append(arguments)
        return hit(*arguments, **options)

    counter._limiter.hit = counted  # type: ignore[method-assign]
    return requests
