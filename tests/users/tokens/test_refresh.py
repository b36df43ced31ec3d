"""Refresh tokens cannot be guessed; a child is known to the server alone and always the same."""

import secrets
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from users.tokens import refresh


def test_tokens_are_random_and_carry_their_prefix() -> None:
    found = {refresh.new_token() for _ in range(50)}

    assert len(found) == 50
    assert all(token.startswith("rt_") and len(token) == 46 for token in found)


def test_a_token_has_one_child_under_one_secret(settings: Any) -> None:
    token = refresh.new_token()
    child = refresh.child_of(token)

    assert refresh.child_of(token) == child
    assert child.startswith("rt_")
    assert child != token
    assert refresh.child_of(refresh.new_token()) != child
    settings.AUTH_REFRESH_SECRET = secrets.token_urlsafe(50)
    assert refresh.child_of(token) != child


def test_a_process_without_the_secret_makes_no_token(settings: Any) -> None:
    settings.AUTH_REFRESH_SECRET = ""
    with pytest.raises(ImproperlyConfigured, match="AUTH_REFRESH_SECRET"):
        refresh.child_of(refresh.new_token())
