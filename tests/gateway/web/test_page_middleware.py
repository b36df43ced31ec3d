"""The middleware of pages lets requests of the API pass, and responses are the same as with the middleware extended."""

import json
import logging
import secrets
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.module_loading import import_string
from django.utils.timezone import now
from pytest_django import Settings

from gateway.web import middleware
from tests.factories import random_address
from users.models import User
from users.services import sessions

pytestmark = pytest.mark.django_db
OURS = "gateway.web.middleware."


def _shortcuts() -> dict[str, Any]:
    """Return the middleware that API requests skip: its name in the settings, and what does the same without that."""
    plain = {}
    for name in django_settings.MIDDLEWARE:
        kind = import_string(name)
        if isinstance(kind, type) and name.startswith(OURS):
            plain[name] = next(base for base in kind.__mro__ if base.__module__ != middleware.__name__)
        elif hasattr(kind, "__wrapped__"):
            plain[name] = kind.__wrapped__
    return plain


REQUESTS: list[tuple[str, str, str, dict[str, str]]] = [
    ("get", "/api/auth/me", "", {}),
    ("get", "/api/auth/me", "", {"Authorization": "Bearer x"}),
    ("get", "/api/auth/me", "", {"Authorization": "{token}"}),
    ("get", "/api/auth/me/", "", {"Authorization": "{token}", "Origin": "https://wallet.example"}),
    ("head", "/api/auth/me", "", {"Authorization": "{token}"}),
    ("options", "/api/auth/me", "", {"Authorization": "{token}"}),
    (
        "options",
        "/api/relay/execute",
        "",
        {"Origin": "https://wallet.example", "Access-Control-Request-Method": "POST"},
    ),
    ("post", "/api/relay/execute", "{}", {"Authorization": "{token}"}),
    ("post", "/api/relay/execute", "[", {"Authorization": "{token}"}),
    ("put", "/api/relay/execute", "{}", {"Authorization": "{token}"}),
    ("post", "/api/relay/execute", "{}", {"Authorization": "{token}", "Transfer-Encoding": "chunked"}),
    ("post", "/api/auth/refresh", json.dumps({"refresh": "rt_x"}), {}),
    ("post", "/api/postbacks/nobody/" + "a" * 43, "{}", {}),
    ("get", "/api/user/dashboardInfo", "", {"Authorization": "{token}"}),
    ("get", "/api/user/earnings", "", {"Authorization": "{token}"}),
    ("get", "/api/nowhere", "", {}),
    ("get", "/api/auth/me", "", {"Host": "elsewhere.example"}),
    ("get", "/api/openapi.json", "", {}),
    ("get", "/api/docs", "", {}),
    ("get", "/.well-known/jwks.json", "", {}),
    ("get", "/metrics", "", {}),
    ("get", "/admin/login/", "", {}),
    ("get", "/problems", "", {}),
]


def _token() -> str:
    return sessions.start(profile_address=random_address(), controller=random_address(), now=now()).access


def _answer(client: Client, token: str, request: tuple[str, str, str, dict[str, str]]) -> Any:
    method, path, body, headers = request
    sent = {name: text.format(token=token) for name, text in headers.items()}
    response = client.generic(method.upper(), path, body, "application/json", headers=sent)
    varying = {"X-Request-ID", "Content-Length", "Expires"}
    fixed = {name: text for name, text in response.headers.items() if name not in varying}
    if path.startswith("/api/") and "Vary" in fixed:
        # Without the shortcuts, the session of a cookie was looked up, and this said so.
        fixed["Vary"] = fixed["Vary"].replace("Cookie, ", "")
    return response.status_code, fixed, sorted(response.cookies)


@pytest.mark.parametrize("with_cookie", [False, True])
def test_responses_have_the_same_headers_with_and_without_shortcuts(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *, with_cookie: bool
) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://wallet.example"]
    token = _token()
    results = []
    for plain in ({}, _shortcuts()):
        for name, kind in plain.items():
            monkeypatch.setattr(name, kind)
        client = Client(raise_request_exception=False)
        if with_cookie:
            client.force_login(User.objects.create_superuser(secrets.token_hex(8), password=None))
        results.append([_answer(client, token, request) for request in REQUESTS])

    for request, with_shortcuts, without in zip(REQUESTS, *results, strict=True):
        assert with_shortcuts == without, request


def test_eight_middlewares_are_shortcut() -> None:
    assert len(_shortcuts()) == 8


def test_a_cookie_of_staff_costs_the_api_no_query() -> None:
    client = Client()
    client.force_login(User.objects.create_superuser(secrets.token_hex(8), password=None))

    with CaptureQueriesContext(connection) as queries:
        assert client.get("/api/auth/me").status_code == 401
    assert len(queries) == 0


def test_a_request_is_logged_once_with_its_id_status_path_and_user(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    token = _token()
    response = Client().get("/api/auth/me?x=1", headers={"Authorization": token, "User-Agent": "wallet/1"})

    [event] = [record.msg for record in caplog.records if record.name == "gateway.requests"]
    assert isinstance(event, dict)
    assert event["event"] == "request_finished"
    assert event["request_id"] == response.headers["X-Request-ID"]
    assert (event["request"], event["code"], event["level"]) == ("GET /api/auth/me?x=1", 200, "info")
    assert event["user_id"] == User.objects.get().pk
    assert event["user_agent"] == "wallet/1"


def test_a_page_names_the_member_of_staff_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    staff, client = User.objects.create_superuser(secrets.token_hex(8), password=None), Client()
    client.force_login(staff)
    client.get("/admin/")
    Client().get("/problems")

    events: list[Any] = [record.msg for record in caplog.records if record.name == "gateway.requests"]
    assert [event["user_id"] for event in events] == [staff.pk, None]
