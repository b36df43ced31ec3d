"""A Prometheus server that knows the token."""

import secrets
from collections.abc import Callable

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

Scrape = Callable[[], dict[tuple[str, ...], float]]


@pytest.fixture
def token(settings: Settings) -> str:
    """A token that opens the page."""
    value = secrets.token_urlsafe(32)
    settings.METRICS_TOKENS = [secrets.token_urlsafe(32), value]
    return value


@pytest.fixture
def scrape(token: str, db: None, client: Client) -> Scrape:
    """Return a function that asks for the figures, as values by name and labels' values."""

    def ask() -> dict[tuple[str, ...], float]:
        response = client.get("/metrics", headers={"authorization": f"Bearer {token}"})
        assert response.status_code == 200
        families = text_string_to_metric_families(response.content.decode())
        return {
            (sample.name.removeprefix("gateway_"), *sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
        }

    return ask
