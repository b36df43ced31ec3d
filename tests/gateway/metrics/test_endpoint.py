"""GET /metrics: closed to everybody but the operator's Prometheus, and the same from every process."""

import secrets
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.utils import OperationalError
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from tests.factories import UserFactory
from tests.gateway.metrics.conftest import Scrape
from tests.gateway.test_wiring import settings_with
from tests.portal.history_rows import earned, relayed

_COUNTERS = {
    f"gateway_{name}"
    for name in ("chain_wrong_answers", "chain_batches_refused", "database_errors", "log_lines_dropped")
}
HISTOGRAMS = {
    f"gateway_{name}_seconds"
    for name in (
        *(f"relay_{stage}" for stage in ("acceptance", "broadcast", "mined", "settled")),
        *("chain_request", "stripe_request", "sql"),
    )
}


def refusal(authorization: str = "", method: str = "get", path: str = "/metrics") -> tuple[int, str]:
    headers = {"authorization": authorization} if authorization else {}
    response = getattr(Client(), method)(path, headers=headers)
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.headers["Cache-Control"] == "no-store"
    return response.status_code, response.json().get("code")


@pytest.mark.parametrize("method", ["get", "post", "options"])
def test_without_a_configured_token_the_metrics_page_is_404(settings: Settings, method: str) -> None:
    settings.METRICS_TOKENS = []
    for header in ("", "Bearer ", f"Bearer {secrets.token_urlsafe(32)}"):
        assert refusal(header, method) == (404, "not-found")


@pytest.mark.parametrize("method", ["get", "post", "options"])
def test_a_wrong_token_reveals_nothing(token: str, method: str) -> None:
    wrong = ("", "Bearer", "Bearer ", f"Bearer {token[:-1]}", f"Bearer {token}x", f"Token {token}", token)
    for header in (*wrong, "Bearer ü", f"Bearer {secrets.token_urlsafe(32)}"):
        assert refusal(header, method) == (401, "not-authenticated")


def test_a_refusal_runs_no_query(token: str) -> None:
    # Without the fixture `db` any statement fails the test.
    assert refusal("Bearer nonsense")[0] == 401


@pytest.mark.django_db
def test_every_configured_token_opens_it(settings: Settings) -> None:
    settings.METRICS_TOKENS = [secrets.token_urlsafe(32) for _ in range(3)]
    for token in settings.METRICS_TOKENS:
        response = Client().get("/metrics", headers={"authorization": f"Bearer {token}"})
        assert response.status_code == 200
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert response.headers["Cache-Control"] == "no-store"


def test_it_is_only_read(token: str) -> None:
    assert refusal(f"Bearer {token}", "post") == (405, "method-not-allowed")


@pytest.mark.django_db
def test_names_and_help_texts_follow_prometheus_conventions(token: str, client: Client) -> None:
    text = client.get("/metrics", headers={"authorization": f"Bearer {token}"}).content.decode()
    families = list(text_string_to_metric_families(text))
    assert len(families) == len({family.name for family in families}) > 30
    for family in families:
        assert family.name.startswith("gateway_")
        assert family.documentation.endswith(".")
        # A figure counted from rows at each scrape is a gauge; _total, which the parser leaves out, is for counters.
        kind = "counter" if family.name in _COUNTERS else "gauge"
        assert family.type == ("histogram" if family.name in HISTOGRAMS else kind)
        assert not family.name.endswith("_total")


def test_metrics_are_not_part_of_the_api(description: Any) -> None:
    assert not any("metrics" in path for path in description["paths"])


def test_it_costs_the_same_whatever_happened(scrape: Scrape) -> None:
    counts = []
    for length in (1, 20):
        user = UserFactory.create()
        earned(user, length)
        relayed(user, length)
        with CaptureQueriesContext(connection) as statements:
            scrape()
        counts.append(len(statements))
    # Functions; writes; pauses; approvals; ledger, unbacked, reconciliations; roots; postbacks, networks; calls, ended
    # calls, relayers, treasury, top-ups, losses, tip, reorganisations, unsigned calls, loops, stalls; payments;
    # deletions.
    assert counts == [24, 24]


@pytest.mark.django_db
def test_without_the_database_the_endpoint_reports_it(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(connection, "cursor", away)
    assert refusal(f"Bearer {token}") == (503, "service-unavailable")


def test_tokens_come_from_the_environment_or_a_file(tmp_path: Path) -> None:
    one, two = (secrets.token_urlsafe(32) for _ in range(2))
    (tmp_path / "token").write_text(f"{one}\n")
    for environment, tokens in (
        ({}, []),
        ({"METRICS_TOKEN": f"{one}, {two},"}, [one, two]),
        ({"METRICS_TOKEN_FILE": str(tmp_path / "token")}, [one]),
    ):
        assert tokens == settings_with(**environment).METRICS_TOKENS
    with pytest.raises(SystemExit, match="METRICS_TOKEN"):
        settings_with(METRICS_TOKEN=f"{one},{'x' * 31}")
