"""Every fault leaves as one problem document, and none tells our secrets."""

import json
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib import admin
from django.db import OperationalError
from django.test import Client, override_settings
from django.urls import path
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.common import clock, problems
from gateway.common.errors import DomainError, ServiceUnavailable
from sponsors.errors import WindowCallsLimit

SECRET = secrets.token_hex()


class Refused(DomainError):
    """A refusal of the tests."""

    code, title, status = "refused-in-tests", "Refused", 409


class Echo(APIView):
    """Returns its body, or fails as the query prescribes."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def post(self, request: Request) -> Response:
        match request.query_params.get("fail"):
            case "domain":
                raise Refused("It is so.", retry_after=7, required=5, available=2)
            case "unknown":
                raise RuntimeError(SECRET)
            case "away":
                raise ServiceUnavailable("Not now.", retry_after=5)
            case "database":
                raise OperationalError(SECRET)
        return Response({"body": request.data})


urlpatterns = [path("api/echo", Echo.as_view()), path("admin/", admin.site.urls)]
handler404 = "gateway.admin.error_pages.unknown_path"
handler500 = "gateway.admin.error_pages.broken"

pytestmark = pytest.mark.urls(__name__)


def post(path: str, body: Any, content_type: str = "application/json", **headers: Any) -> Any:
    raw = body if isinstance(body, bytes | str) else json.dumps(body)
    return Client(raise_request_exception=False).post(path, raw, content_type=content_type, headers=headers)


def test_an_error_has_its_code_its_facts_and_the_request_id() -> None:
    response = post("/api/echo?fail=domain", {})

    assert (response.status_code, response["Content-Type"]) == (409, "application/problem+json")
    assert response["Retry-After"] == "7"
    assert response.json() == {
        "type": "/problems/refused-in-tests",
        "title": "Refused",
        "status": 409,
        "code": "refused-in-tests",
        "detail": "It is so.",
        "requestId": response["X-Request-ID"],
        "required": 5,
        "available": 2,
    }


def test_a_refusal_for_now_is_a_warning_without_a_trace(caplog: pytest.LogCaptureFixture) -> None:
    assert post("/api/echo?fail=away", {}).status_code == 503
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.name for record in warnings] == ["gateway.requests", "django.request"]
    event: Any = warnings[0].msg
    assert event["level"] == "warning"
    assert not [record for record in caplog.records if record.levelname == "ERROR" or record.exc_info]


def test_an_invalid_host_name_is_not_an_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    response = Client(raise_request_exception=False).post(
        "/api/echo", "{}", "application/json", HTTP_HOST="evil.example"
    )
    assert response.status_code == 400
    assert [record.levelname for record in caplog.records if "evil.example" in record.getMessage()] == [
        "WARNING"
    ]
    assert not [record for record in caplog.records if record.levelname == "ERROR" or record.exc_info]


@pytest.mark.parametrize("body", ['{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 1}}', '[{"a": 1, "\\u0061": 2}]'])
def test_a_member_that_is_named_twice_is_refused(body: str) -> None:
    response = post("/api/echo", body)
    assert (response.status_code, response.json()["code"]) == (400, "invalid-request")
    assert post("/api/echo", '[{"a": 1}, {"a": 2}]').status_code == 200


def test_an_unexpected_exception_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    assert post("/api/echo?fail=unknown", {}).status_code == 500
    [record] = [record for record in caplog.records if record.name == "gateway.common.problems"]
    assert (record.levelname, record.exc_info is not None) == ("ERROR", True)
    assert [record.levelname for record in caplog.records if record.name == "django.request"] == ["ERROR"]


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [("unknown", 500, "internal-error"), ("database", 503, "service-unavailable")],
)
def test_an_internal_error_reveals_only_the_request_id(fault: str, status: int, code: str) -> None:
    response = post(f"/api/echo?fail={fault}", {})

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert SECRET not in response.content.decode()
    assert response.json()["requestId"] == response["X-Request-ID"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b"[" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
        b"nul",
    ],
)
def test_a_body_that_is_not_json_is_a_400(body: bytes) -> None:
    response = post("/api/echo", body)

    assert (response.status_code, response.json()["code"]) == (400, "invalid-request")


def test_a_body_above_the_cap_is_a_413() -> None:
    response = post("/api/echo", {"a": "x" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE})

    assert (response.status_code, response.json()["code"]) == (413, "request-too-large")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_a_body_that_is_not_declared_as_json_is_a_415(content_type: str) -> None:
    response = post("/api/echo", b'{"a": 1}', content_type)

    assert (response.status_code, response.json()["code"]) == (415, "unsupported-media-type")


def test_a_request_without_a_body_is_never_a_415() -> None:
    assert post("/api/echo", b"", "text/plain").status_code == 200


def test_an_accept_header_for_html_still_gets_json() -> None:
    response = post("/api/echo", {"a": 1}, Accept="text/html")

    assert response.json() == {"body": {"a": 1}}


def test_a_wrong_method_and_an_unknown_path_are_problem_documents() -> None:
    client = Client()
    assert client.get("/api/echo").json()["code"] == "method-not-allowed"
    assert client.get("/api/nowhere").json()["code"] == "not-found"


@override_settings(DEBUG=False)
def test_the_request_id_of_the_caller_is_not_trusted() -> None:
    forged = secrets.token_hex()

    assert post("/api/echo", {}, **{"X-Request-ID": forged})["X-Request-ID"] != forged


def test_a_limit_that_resets_tells_when_a_retry_may_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    now, seconds = datetime(2026, 3, 7, tzinfo=UTC), secrets.randbelow(10**6) + 1
    monkeypatch.setattr(clock, "now", lambda: now)
    for resets, wait in ((now + timedelta(seconds=seconds - 0.5), seconds), (now - timedelta(days=1), 1)):
        limit = WindowCallsLimit("It is used up.", resets=resets.isoformat())
        assert problems.json_problem(limit).headers["Retry-After"] == str(wait)
    for other in (WindowCallsLimit("It is used up."), WindowCallsLimit("It is used up.", resets=None)):
        assert "Retry-After" not in problems.json_problem(other).headers
    told = WindowCallsLimit("It is used up.", retry_after=7, resets=now.isoformat())
    assert problems.json_problem(told).headers["Retry-After"] == "7"
