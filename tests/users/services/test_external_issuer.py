"""The external issuer's keys are fetched by a task, and the last good ones stay when a fetch fails."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils.timezone import now

from devstack.ports import free_port
from tests.users.external_issuer import ExternalIssuer
from users.models import IssuerKeySet
from users.services import external_issuer

pytestmark = pytest.mark.django_db


@pytest.fixture
def issuer(settings: Any) -> Iterator[ExternalIssuer]:
    """An issuer whose address is configured."""
    external = ExternalIssuer()
    with external.serving():
        settings.AUTH_EXTERNAL_JWKS_URL = external.url
        yield external


def test_without_an_issuer_nothing_is_fetched(settings: Any) -> None:
    settings.AUTH_EXTERNAL_JWKS_URL = ""

    assert not external_issuer.refresh_keys(now=now())
    assert not IssuerKeySet.objects.exists()


def test_the_keys_are_stored_and_replaced_by_newer_ones(issuer: ExternalIssuer) -> None:
    first, later = now(), now() + timedelta(minutes=5)
    assert external_issuer.refresh_keys(now=first)
    assert IssuerKeySet.objects.get().keys == issuer.keys

    issuer.document = {"keys": issuer.keys[:1]}
    assert external_issuer.refresh_keys(now=later)

    stored = IssuerKeySet.objects.get()
    assert (stored.keys, stored.fetched_at) == (issuer.keys[:1], later)


@pytest.mark.parametrize("status", [204, 302, 404, 500])
def test_a_response_other_than_200_keeps_the_last_key_set(issuer: ExternalIssuer, status: int) -> None:
    external_issuer.refresh_keys(now=now())
    before = IssuerKeySet.objects.get()
    issuer.status, issuer.document = status, {"keys": issuer.keys[:1]}

    assert not external_issuer.refresh_keys(now=now())
    assert IssuerKeySet.objects.get().keys == before.keys
    assert issuer.requests == 2


@pytest.mark.parametrize("document", [{"keys": []}, {"keys": "none"}, [], b"<html>", b"[" * 5_000])
def test_a_response_that_is_not_a_key_set_keeps_the_last_one(issuer: ExternalIssuer, document: Any) -> None:
    external_issuer.refresh_keys(now=now())
    issuer.document = document

    assert not external_issuer.refresh_keys(now=now())
    assert IssuerKeySet.objects.get().keys == issuer.keys


def test_an_oversized_response_is_not_read_to_its_end(issuer: ExternalIssuer) -> None:
    issuer.document = json.dumps({"keys": issuer.keys}).encode() + b" " * 300_000

    assert not external_issuer.refresh_keys(now=now())
    assert not IssuerKeySet.objects.exists()


def test_an_issuer_that_is_away_leaves_the_last_set_in_force(issuer: ExternalIssuer, settings: Any) -> None:
    settings.AUTH_EXTERNAL_JWKS_URL = f"http://127.0.0.1:{free_port()}/jwks.json"
    IssuerKeySet.objects.create(url=settings.AUTH_EXTERNAL_JWKS_URL, keys=issuer.keys, fetched_at=now())

    assert not external_issuer.refresh_keys(now=now())
    assert IssuerKeySet.objects.get().keys == issuer.keys


def test_keys_that_could_be_misused_are_left_out(issuer: ExternalIssuer) -> None:
    good = issuer.keys[0]
    issuer.document = {
        "keys": [
            {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
            {**good, "use": "enc", "kid": "encryption"},
            {name: value for name, value in good.items() if name != "kid"},
            "no key at all",
            good,
        ]
    }

    assert external_issuer.refresh_keys(now=now())
    assert IssuerKeySet.objects.get().keys == [good]
