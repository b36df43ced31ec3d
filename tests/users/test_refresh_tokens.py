"""Refresh tokens cannot be guessed; a child is known to the server alone and always the same."""

import secrets
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from users.tokens import new_refresh_token, next_refresh_token


def test_tokens_are_random_and_carry_their_prefix() -> None:
    tokens = {new_refresh_token() for _ in range(50)}

    assert len(tokens) == 50
    assert all(token.startswith("rt_") and len(token) == 46 for token in tokens)


def test_a_token_has_one_child_under_one_secret(settings: Any) -> None:
    token = new_refresh_token()
    child = next_refresh_token(token)

    assert next_refresh_token(token) == child
    assert child.startswith("rt_")
    assert child != token
    assert next_refresh_token(new_refresh_token()) != child
    settings.AUTH_REFRESH_SECRET = secrets.token_urlsafe(50)
    assert next_refresh_token(token) != child


def test_a_process_without_the_secret_makes_no_token(settings: Any) -> None:
    settings.AUTH_REFRESH_SECRET = ""
    with pytest.raises(ImproperlyConfigured, match="AUTH_REFRESH_SECRET"):
        next_refresh_token(new_refresh_token())
