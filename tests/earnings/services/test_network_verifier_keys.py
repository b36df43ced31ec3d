"""Google's keys are fetched by a periodic task, and the last good ones stay after any failure."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from credits.queries import balance_of
from devstack.ad_networks.signing import KEY_ID
from earnings.models import VerifierKeySet
from earnings.services import networks
from earnings.tasks import refresh_verifier_keys
from tests.earnings.ad_networks import key_pair, set_up
from tests.factories import UserFactory
from tests.users.external_issuer import ExternalIssuer

pytestmark = pytest.mark.django_db


@pytest.fixture
def google(settings: Any) -> Iterator[ExternalIssuer]:
    """A server that responds with keys, at the configured address."""
    server = ExternalIssuer()
    server.document = {"keys": [{"keyId": int(KEY_ID), "pem": key_pair()[1], "base64": "…"}]}
    with server.serving():
        settings.ADMOB_KEYS_URL = server.url
        yield server


def test_while_admob_is_disabled_nothing_is_fetched(google: ExternalIssuer) -> None:
    set_up("admob", is_enabled=False)

    assert not networks.refresh_verifier_keys(now=timezone.now())
    assert google.requests == 0


def test_fetched_keys_verify_from_then_on(google: ExternalIssuer) -> None:
    user, network = UserFactory.create(), set_up("admob")
    VerifierKeySet.objects.all().delete()
    reward = network.reward(user)
    assert network.send(reward).status == 503

    refresh_verifier_keys()

    assert VerifierKeySet.objects.get().keys == {KEY_ID: key_pair()[1]}
    assert network.send(reward).status == 200
    assert balance_of(user).available == int(reward.amount)


@pytest.mark.parametrize(
    "document", [{"keys": []}, {"keys": "none"}, [], {"keys": [{"keyId": 1}]}, b"<html>", b"[" * 5_000]
)
def test_a_response_without_keys_keeps_the_last_ones(google: ExternalIssuer, document: Any) -> None:
    set_up("admob")
    networks.refresh_verifier_keys(now=timezone.now())
    before = VerifierKeySet.objects.get()
    google.document = document

    assert not networks.refresh_verifier_keys(now=timezone.now() + timedelta(minutes=1))
    after = VerifierKeySet.objects.get()
    assert (after.keys, after.fetched_at) == (before.keys, before.fetched_at)


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_response_other_than_200_keeps_the_last_keys(google: ExternalIssuer, status: int) -> None:
    set_up("admob")
    google.status = status

    assert not networks.refresh_verifier_keys(now=timezone.now())
    assert google.requests == 1


def test_an_unreachable_google_keeps_the_last_ones(settings: Any) -> None:
    settings.ADMOB_KEYS_URL = "http://127.0.0.1:1/keys"
    set_up("admob")

    assert not networks.refresh_verifier_keys(now=timezone.now())
    assert VerifierKeySet.objects.count() == 1
