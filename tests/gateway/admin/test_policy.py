"""Pages of the admin run own files only: nothing inline, nothing evaluated, nothing from elsewhere."""

import re

import pytest
from django.test import Client

from tests.factories import UserFactory
from tests.staff import log_in_staff

pytestmark = pytest.mark.django_db
_ADDRESS = re.compile(r"""(?:src|href|action|srcset)\s*=\s*["']([^"']*)""")


def _directives(client: Client, path: str) -> dict[str, str]:
    policy = client.get(path).headers["Content-Security-Policy"]
    return dict(part.strip().split(" ", 1) for part in policy.split(";"))


@pytest.mark.parametrize("path", ["/admin/login/", "/admin/users/user/", "/admin/jsi18n/"])
def test_no_script_is_inline_or_evaluated(client: Client, path: str) -> None:
    log_in_staff(client)

    policy = _directives(client, path)

    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert not [words for name, words in policy.items() if "unsafe" in words and name != "style-src-attr"]


def test_other_pages_keep_their_own_policy(client: Client) -> None:
    assert _directives(client, "/problems/")["default-src"] == "'self'"


@pytest.mark.parametrize(
    "path",
    ["/admin/login/", "/admin/users/user/", "/admin/users/user/add/", "/admin/relay/relaytransaction/"],
)
def test_a_page_names_no_other_host_and_has_nothing_inline(client: Client, path: str) -> None:
    UserFactory.create()
    log_in_staff(client)

    page = client.get(path).content.decode()

    assert [address for address in _ADDRESS.findall(page) if "//" in address] == []
    assert re.findall(r"<script(?![^>]*\ssrc=)[^>]*>", page) == re.findall(r"<style", page) == []
    assert re.findall(r"""\son[a-z]+\s*=\s*["']""", page) == []


def test_alpine_is_the_build_that_evaluates_nothing(client: Client) -> None:
    response = client.get("/static/unfold/js/alpine/alpine.js")

    code = b"".join(response).decode()
    assert "CSP build" in code
    assert not re.search(r"\bAsyncFunction\(|new Function\(|\beval\(", code)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/.well-known/jwks.json", {}),
        ("/api/openapi.json", {}),
        ("/api/auth/me", {}),
        ("/api/relay/execute", {}),
        ("/nowhere", {}),
        ("/metrics", {}),
        ("/api/auth/nonce", {"Transfer-Encoding": "chunked"}),
        ("/api/auth/me", {"Host": "elsewhere.example"}),
    ],
)
def test_a_data_response_cannot_load_anything(client: Client, path: str, headers: dict[str, str]) -> None:
    response = client.get(path, headers=headers)
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"


@pytest.mark.parametrize("path", ["/api/docs", "/problems/not-found"])
def test_pages_of_the_documentation_load_our_own_files(client: Client, path: str) -> None:
    assert _directives(client, path)["default-src"] == "'self'"
