"""Nothing is served by plain http where the service is public by https, and no body without its length."""

import json
import re
import secrets
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from devstack.services.stack import Services
from tests.docs.pages import DOCS
from tests.gateway.test_wiring import settings_with
from users.models import SignInChallenge

pytestmark = pytest.mark.django_db
PLAIN = "http"
BODY = json.dumps({"address": "0x" + secrets.token_hex(20)})


@pytest.fixture
def public_by_https(settings: Settings) -> None:
    """The service as behind a proxy that ends TLS."""
    loaded = settings_with(PUBLIC_URL="https://testserver", TRUSTED_PROXY_COUNT="1")
    for name in dir(loaded):
        if name.startswith("SECURE_"):
            setattr(settings, name, getattr(loaded, name))


def ask(path: str, *, proto: str | None, **headers: str) -> Any:
    forwarded = {} if proto is None else {"X-Forwarded-Proto": proto}
    return Client().post(path, BODY, content_type="application/json", headers={**forwarded, **headers})


@pytest.mark.parametrize("proto", [PLAIN, None, "http, https", "ws"])
@pytest.mark.parametrize("path", ["/api/auth/nonce", "/webhooks/stripe", "/nowhere"])
@pytest.mark.usefixtures("public_by_https")
def test_plain_http_is_refused_and_redirected_nowhere(path: str, proto: str | None) -> None:
    refused = ask(path, proto=proto)
    assert (refused.status_code, refused.json()["code"]) == (403, "https-required")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.headers["X-Request-ID"] == refused.json()["requestId"]
    assert "Location" not in refused.headers
    assert not SignInChallenge.objects.exists()


@pytest.mark.usefixtures("public_by_https")
def test_https_requests_are_served() -> None:
    served = Client().get("/.well-known/jwks.json", headers={"X-Forwarded-Proto": "https"})
    assert served.status_code == 200
    assert "includeSubDomains" in served.headers["Strict-Transport-Security"]


@pytest.mark.usefixtures("public_by_https")
@pytest.mark.parametrize(
    "path", ["/admin/login/?next=/admin/", "/admin", "/problems", "/problems/https-required"]
)
def test_a_browser_is_redirected_to_the_page(path: str) -> None:
    response = Client().get(path, headers={"X-Forwarded-Proto": PLAIN})
    assert (response.status_code, response.headers["Location"]) == (301, f"https://testserver{path}")


@pytest.mark.usefixtures("public_by_https")
def test_an_internal_scraper_may_use_plain_http(settings: Settings) -> None:
    token = secrets.token_hex(32)
    settings.METRICS_TOKENS = [token]
    assert Client().get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_a_service_without_tls_serves_plain_http() -> None:
    assert settings_with(PUBLIC_URL="http://127.0.0.1:8000").SECURE_SSL_REDIRECT is False
    assert ask("/api/auth/nonce", proto=PLAIN).status_code != 403


@pytest.mark.parametrize("coding", ["chunked", "gzip, chunked", "identity"])
def test_a_body_in_chunks_is_refused_instead_of_taken_for_none(coding: str) -> None:
    refused = ask("/api/auth/nonce", proto=None, **{"Transfer-Encoding": coding})
    assert (refused.status_code, refused.json()["code"]) == (411, "length-required")
    assert refused.headers["X-Request-ID"] == refused.json()["requestId"]
    assert not SignInChallenge.objects.exists()


def test_a_web_page_may_read_that_its_body_was_refused(settings: Settings) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://wallet.example"]
    headers = {"Origin": "https://wallet.example", "Transfer-Encoding": "chunked"}
    refused = ask("/api/auth/nonce", proto=None, **headers)
    assert refused.status_code == 411
    assert refused.headers["Access-Control-Allow-Origin"] == "https://wallet.example"


def test_a_page_of_another_origin_may_send_every_header_of_the_api(settings: Settings) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://dapp.example"]
    documented = set(re.findall(r"in: header\n +name: (\S+)", (DOCS / "openapi.yaml").read_text()))
    assert {"Relay-Sponsor", "Relay-Sponsor-Voucher", "Idempotency-Key"} < documented
    asked = {"Origin": "https://dapp.example", "Access-Control-Request-Method": "POST"}
    allowed = Client().options("/api/relay/execute", headers=asked).headers["Access-Control-Allow-Headers"]
    assert {name.lower() for name in documented} <= set(allowed.split(", "))


def test_no_body_needs_no_length() -> None:
    assert Client().post("/api/auth/logout").status_code in (400, 401, 415)


def test_a_body_that_the_server_did_not_read_is_refused_by_its_length(
    services: Services, settings: Settings
) -> None:
    length = str(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
    headers: dict[str, Any] = {"CONTENT_TYPE": "application/json", "CONTENT_LENGTH": length}
    refused = Client().generic("POST", "/api/auth/nonce", **headers)
    assert (refused.status_code, refused.json()["code"]) == (413, "request-too-large")
