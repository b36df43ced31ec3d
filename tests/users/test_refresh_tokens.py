"""Refresh tokens cannot be guessed; only the server can compute the next one, which is always the same."""

import secrets
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from users.tokens import new_refresh_token, next_refresh_token


def test_tokens_are_random_and_carry_their_prefix() -> None:
    tokens = {new_refresh_token() for _ in range(50)}

    assert len(tokens) == 50
    assert all(token.startswith("rt_") and len(token) == 46 for token in tokens)


def test_a_token_has_one_next_token_under_one_secret(settings: Any) -> None:
    token = new_refresh_token()
    successor = next_refresh_token(token)

    assert next_refresh_token(token) == successor
    assert successor.startswith("rt_")
    assert successor != token
    assert next_refresh_token(new_refresh_token()) != successor
    settings.AUTH_REFRESH_SECRET = secrets.token_urlsafe(50)
    assert next_refresh_token(token) != successor


def test_a_process_without_the_secret_makes_no_token(settings: Any) -> None:
    settings.AUTH_REFRESH_SECRET = ""
    with pytest.raises(ImproperlyConfigured, match="AUTH_REFRESH_SECRET"):
        next_refresh_token(new_refresh_token())
