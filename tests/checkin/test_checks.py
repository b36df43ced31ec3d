"""Weak seed secrets are reported by `manage.py check`."""

import secrets
from typing import Any

import pytest

from checkin.apps import seed_secrets_are_strong


def test_the_settings_of_these_tests_are_strong() -> None:
    assert seed_secrets_are_strong() == []


@pytest.mark.parametrize("weak", [[], ["x" * 31], [secrets.token_hex(16), "short"]])
def test_missing_and_short_secrets_are_refused(settings: Any, weak: list[str]) -> None:
    settings.CHECKIN_SEED_SECRETS = weak
    assert [message.id for message in seed_secrets_are_strong()] == ["checkin.E001"]


def test_a_secret_with_another_job_is_refused(settings: Any) -> None:
    settings.CHECKIN_SEED_SECRETS = [secrets.token_hex(16), settings.SECRET_KEY]
    assert [message.id for message in seed_secrets_are_strong()] == ["checkin.E001"]


def test_two_strong_secrets_are_accepted(settings: Any) -> None:
    settings.CHECKIN_SEED_SECRETS = [secrets.token_hex(16), secrets.token_hex(32)]
    assert seed_secrets_are_strong() == []
