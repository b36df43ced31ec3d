"""Keys that protect too little are errors of the system check."""

import secrets
from typing import Any

import pytest

from earnings.apps import check_secret_keys


@pytest.mark.parametrize("weak", [[], [secrets.token_hex(16)[:31]], [secrets.token_hex(16), "short"]])
def test_missing_and_short_keys_are_errors(settings: Any, weak: list[str]) -> None:
    settings.AD_NETWORK_SECRET_KEYS = weak
    assert [error.id for error in check_secret_keys()] == ["earnings.E001"]


@pytest.mark.parametrize("other", ["SECRET_KEY", "AUTH_REFRESH_SECRET"])
def test_a_key_with_another_purpose_is_an_error(settings: Any, other: str) -> None:
    settings.AD_NETWORK_SECRET_KEYS = [secrets.token_hex(16), getattr(settings, other)]
    assert [error.id for error in check_secret_keys()] == ["earnings.E001"]


def test_separate_long_keys_pass(settings: Any) -> None:
    settings.AD_NETWORK_SECRET_KEYS = [secrets.token_hex(16), secrets.token_hex(32)]
    assert check_secret_keys() == []
