"""The caller's address has one spelling, whichever proxy wrote it."""

import secrets

import pytest
from django.test import RequestFactory
from pytest_django import Settings
from rest_framework.request import Request
from rest_framework.views import APIView

from devstack.services.stack import Services
from gateway.common.http import client_ip, client_network, client_site, lockout_address
from gateway.web.throttling import RateLimit


class PerMachine(RateLimit):
    """Counts callers without a token."""

    setting = "RELAY_READ_RATE"


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        (0, "6.6.6.6", "127.0.0.1"),
        (1, "6.6.6.6, 7.7.7.7", "7.7.7.7"),
        (2, "6.6.6.6, 7.7.7.7, 8.8.8.8", "7.7.7.7"),
        (2, "8.8.8.8", "127.0.0.1"),
        (1, "6.6.6.6, 7.7.7.7:51234", "7.7.7.7"),
        (1, "6.6.6.6, 2001:DB8::1", "2001:db8::1"),
        (1, "6.6.6.6, [2001:db8::1]", "2001:db8::1"),
        (1, "6.6.6.6, [2001:db8::1]:443", "2001:db8::1"),
        (1, "6.6.6.6, fe80::1%eth0", "fe80::1"),
        (1, "6.6.6.6, ::ffff:7.7.7.7", "7.7.7.7"),
        (1, "6.6.6.6, [::ffff:7.7.7.7]:51234", "7.7.7.7"),
    ],
)
def test_only_our_own_proxies_set_the_callers_address(
    settings: Settings, proxies: int, forwarded: str, expected: str
) -> None:
    settings.TRUSTED_PROXY_COUNT = proxies

    request = RequestFactory().get("/", headers={"X-Forwarded-For": forwarded})

    assert client_ip(request) == expected


@pytest.mark.parametrize(
    "forwarded", ["unknown", "_hidden", "7.7.7.7:", "7.7.7", "[2001:db8::1", "7.7.7.7:1:2", "☃"]
)
def test_invalid_addresses_count_as_one_unknown_caller(settings: Settings, forwarded: str) -> None:
    settings.TRUSTED_PROXY_COUNT = 1

    request = RequestFactory().get("/", HTTP_X_FORWARDED_FOR=forwarded)

    assert (client_ip(request), lockout_address(request)) == ("unknown", None)
    assert client_network(request) == client_site(request) == "unknown"


def test_without_caller_addresses_all_requests_count_as_one_caller() -> None:
    assert client_ip(RequestFactory().get("/", REMOTE_ADDR="")) == "unknown"


def test_one_subscriber_is_one_caller_whichever_address_they_pick(
    settings: Settings, services: Services
) -> None:
    settings.RELAY_READ_RATE = "2/minute"
    half = f"2001:db8:{secrets.token_hex(2)}"
    addresses = [
        f"{half}:1::1",
        f"{half}:1:ffff::{secrets.token_hex(2)}",
        f"[{half}:1::2]:443",
        f"{half}:2::1",
    ]

    requests = [Request(RequestFactory().get("/", REMOTE_ADDR=address)) for address in addresses]
    for request in requests:
        request.user = None  # type: ignore[assignment]

    assert [PerMachine().allow_request(request, APIView()) for request in requests] == [
        True,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("address", "network", "lockout", "site"),
    [
        ("203.0.113.9", "203.0.113.9", "203.0.113.9", "203.0.113.0/24"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "2001:db8:1:2::", "2001:db8:1::/48"),
        ("::ffff:203.0.113.9", "203.0.113.9", "203.0.113.9", "203.0.113.0/24"),
    ],
)
def test_a_caller_is_counted_by_networks_that_it_cannot_leave_at_will(
    address: str, network: str, lockout: str, site: str
) -> None:
    request = RequestFactory().get("/", REMOTE_ADDR=address)

    assert (client_network(request), lockout_address(request), client_site(request)) == (
        network,
        lockout,
        site,
    )
