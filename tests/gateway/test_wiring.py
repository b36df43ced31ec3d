"""Health, documentation and settings of the whole."""

import pytest
from django.core.management import call_command
from django.db import connections
from django.test import Client


def test_liveness_needs_nothing() -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readiness_asks_the_database() -> None:
    assert Client().get("/readyz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readiness_fails_without_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["default"].settings_dict, "HOST", "/nowhere")
    connections["default"].close()

    assert Client().get("/readyz").status_code == 503


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/docs", "/api/docs/", "/api/docs/redoc"])
def test_the_documentation_loads_nothing_from_elsewhere(path: str) -> None:
    page = Client().get(path).content.decode()

    assert "/static/drf_spectacular_sidecar/" in page
    assert "https://" not in page.replace("https://github.com", "")


def test_the_description_names_every_path_of_the_contract() -> None:
    paths = Client().get("/api/openapi.json").json()["paths"]

    assert {"/api/relay/execute", "/api/relay/quota", "/api/relay/transactionStatus"} <= set(paths)


@pytest.mark.django_db
def test_no_model_change_lacks_its_migration() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
