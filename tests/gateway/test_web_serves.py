"""The admin as a process of its own: what each of the two serves, and that neither needs the other's paths."""

import importlib.util
import sys
from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import Settings

import gateway.urls

pytestmark = pytest.mark.django_db


@pytest.fixture
def serve(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Client]:
    """Return a function that makes a client of a web process with this `WEB_SERVES`."""

    def with_routes(what: str) -> Client:
        settings.WEB_SERVES = what
        spec = importlib.util.spec_from_file_location(f"routes_of_{what}", gateway.urls.__file__)
        assert spec
        assert spec.loader
        routes = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(routes)
        monkeypatch.setitem(sys.modules, spec.name, routes)
        settings.ROOT_URLCONF = spec.name
        return Client()

    return with_routes


def test_the_service_has_no_admin(serve: Callable[[str], Client]) -> None:
    client = serve("service")
    for path in ("/admin", "/admin/", "/admin/login/", "/admin/relay/relayer/1/change/"):
        response = client.get(path)
        assert (response.status_code, response.headers["Content-Type"]) == (404, "application/problem+json")
    assert client.get("/api/service").status_code == 200
    assert client.get("/").status_code == 200


def test_the_admin_has_nothing_else(serve: Callable[[str], Client]) -> None:
    client = serve("admin")
    for path in ("/api/service", "/api/relay/execute", "/account", "/metrics", "/.well-known/jwks.json"):
        response = client.post(path) if path.endswith("execute") else client.get(path)
        assert (response.status_code, response.headers["Content-Type"]) == (404, "application/problem+json")
    assert client.get("/").headers["Location"] == "/admin/"
    assert client.get("/admin/", follow=True).redirect_chain[-1][0].startswith("/admin/login/")
    assert client.get("/admin/nothing/").status_code == 302
