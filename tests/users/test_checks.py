"""The system checks find faults that would otherwise show only at a sign-in."""

from typing import Any

import pytest
from django.core.checks import run_checks

from tests.users.private_keys import ec_key, pem, rsa_key


def _ids() -> list[str]:
    return [str(message.id) for message in run_checks(tags=["users"])]


def test_the_test_settings_are_in_order() -> None:
    assert _ids() == []


@pytest.mark.parametrize("text", ["", pem(rsa_key()), pem(ec_key()) * 2])
def test_unusable_signing_keys(settings: Any, text: str) -> None:
    settings.AUTH_SIGNING_KEYS = text

    assert _ids() == ["users.E001"]


def _external(settings: Any) -> None:
    settings.AUTH_EXTERNAL_JWKS_URL = "https://id.example/jwks.json"
    settings.AUTH_EXTERNAL_ISSUER, settings.AUTH_EXTERNAL_AUDIENCE = "https://id.example", "relay"


def test_a_complete_external_issuer_passes_the_check(settings: Any) -> None:
    _external(settings)

    assert _ids() == []


@pytest.mark.parametrize("name", ["AUTH_EXTERNAL_JWKS_URL", "AUTH_EXTERNAL_ISSUER", "AUTH_EXTERNAL_AUDIENCE"])
def test_an_external_issuer_that_is_pinned_in_part(settings: Any, name: str) -> None:
    _external(settings)
    setattr(settings, name, "")

    assert _ids() == ["users.E003"]


def test_an_external_issuer_that_is_ourselves(settings: Any) -> None:
    _external(settings)
    settings.AUTH_EXTERNAL_ISSUER = settings.SIMPLE_JWT["ISSUER"]

    assert _ids() == ["users.E003"]


def test_external_keys_without_tls(settings: Any) -> None:
    _external(settings)
    settings.AUTH_EXTERNAL_JWKS_URL = "http://id.example/jwks.json"

    assert _ids() == ["users.W002"]


def test_a_domain_that_is_not_the_public_host(settings: Any) -> None:
    settings.AUTH_DOMAIN = "app.example"

    assert _ids() == ["users.W001"]


@pytest.mark.parametrize(
    ("is_https", "proxies", "expected"),
    [(True, 0, ["users.W003"]), (True, 1, []), (False, 0, [])],
)
def test_https_without_a_trusted_proxy_fails_the_check(
    settings: Any, is_https: bool, proxies: int, expected: list[str]
) -> None:
    settings.SECURE_SSL_REDIRECT, settings.TRUSTED_PROXY_COUNT = is_https, proxies

    messages = run_checks(tags=["users"], include_deployment_checks=True)

    assert [str(message.id) for message in messages] == expected
