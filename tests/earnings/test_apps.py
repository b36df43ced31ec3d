"""Keys that seal too little stop the start."""

import secrets
from typing import Any

import pytest

from earnings.apps import check_secret_keys


@pytest.mark.parametrize("weak", [[], [secrets.token_hex(16)[:31]], [secrets.token_hex(16), "short"]])
def test_missing_and_short_keys_are_told(settings: Any, weak: list[str]) -> None:
    settings.AD_NETWORK_SECRET_KEYS = weak
    assert [found.id for found in check_secret_keys()] == ["earnings.E001"]


@pytest.mark.parametrize("other", ["SECRET_KEY", "AUTH_REFRESH_SECRET"])
def test_a_key_that_does_another_job_as_well_is_told(settings: Any, other: str) -> None:
    settings.AD_NETWORK_SECRET_KEYS = [secrets.token_hex(16), getattr(settings, other)]
    assert [found.id for found in check_secret_keys()] == ["earnings.E001"]


def test_keys_of_their_own_pass(settings: Any) -> None:
    settings.AD_NETWORK_SECRET_KEYS = [secrets.token_hex(16), secrets.token_hex(32)]
    assert check_secret_keys() == []
