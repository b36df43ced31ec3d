"""While the database is unavailable or read-only, every entry returns 503, which the caller retries, and never 500."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.earnings.ad_networks import SENDER, set_up
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

READ_ONLY = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"


def routes(resolver: Any = None, prefix: str = "/") -> Iterator[str]:
    """Yield the path of every route, with a number in place of each argument."""
    for pattern in (resolver or get_resolver()).url_patterns:
        text = str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, prefix + text.lstrip("^"))
        elif isinstance(pattern, URLPattern):
            yield _filled(prefix + text)


def _filled(pattern: str) -> str:
    path = re.sub(r"<[^>]+>", "1", re.sub(r"\(\?P<\w+>(\[[^]]*\]|[^)])*\)\??", "1", pattern))
    return re.sub(r"\\Z|[\^$?\\]|\(\)|\(\?:", "", path).replace("//", "/")


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_entry_returns_500_while_the_database_is_unavailable(method: str, kind: type[Exception]) -> None:
    def unavailable(*_: Any) -> Any:
        raise kind("the connection is lost")

    client = Client(raise_request_exception=False)
    with connection.execute_wrapper(unavailable):
        statuses = {
            path: client.generic(method, path, content_type="application/json").status_code
            for path in routes()
        }
    assert len(statuses) > 100
    assert 503 in statuses.values()
    assert {path: status for path, status in statuses.items() if status == 500} == {}


def test_a_postback_and_a_login_of_staff_are_refused_with_503_while_the_database_is_read_only() -> None:
    network, user = set_up("tapjoy"), UserFactory.create()
    request = network.request(network.reward(user))
    path = f"/api/postbacks/{network.slug}/{request.path_token}?{request.query.decode()}"
    client = Client(raise_request_exception=False, REMOTE_ADDR=SENDER)

    connection.cursor().execute(READ_ONLY)
    assert client.get(path, headers=request.headers or None).status_code == 503
    connection.cursor().execute(READ_ONLY)
    form = {"username": "somebody", "password": "wrong", "otp_token": "123456"}
    assert client.post("/admin/login/", form).status_code == 503
