"""The secrets of networks are sealed in the database, under a key that is not stored there."""

import logging
import secrets
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from earnings.models import AdNetwork, Postback
from earnings.networks.base import PostbackResponse
from earnings.services import networks
from earnings.services.push import request_visit_link
from gateway.common.crypto import SealedUnderAnotherKey
from gateway.staff.models import ApprovalRequest
from tests.credits.rows import query
from tests.earnings.ad_networks import set_secret, set_up
from tests.factories import UserFactory
from tests.staff import member

pytestmark = pytest.mark.django_db


def _stored() -> str:
    return str(query("SELECT * FROM earnings_adnetwork"))


def test_the_database_holds_no_secret_in_plain_text() -> None:
    first, second = secrets.token_hex(16), secrets.token_hex(16)
    for secret in (first, second):
        set_secret(slug="tapjoy", secret=secret, now=timezone.now())

    assert networks.live_secrets(AdNetwork.objects.get()) == [second, first]
    assert first not in _stored()
    assert second not in _stored()


def test_the_same_secret_again_changes_nothing() -> None:
    secret = secrets.token_hex(16)
    set_secret(slug="tapjoy", secret=secret, now=timezone.now())
    before = _stored()

    set_secret(slug="tapjoy", secret=f" {secret} ", now=timezone.now())

    assert _stored() == before


def test_an_empty_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        set_secret(slug="tapjoy", secret=" \n", now=timezone.now())
    assert not AdNetwork.objects.exclude(current_secret="").exists()


def test_without_the_key_postbacks_are_postponed(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    network, user = set_up("tapjoy"), UserFactory.create()
    settings.AD_NETWORK_SECRET_KEYS = [secrets.token_urlsafe(40)]

    with caplog.at_level(logging.ERROR):
        assert network.send(network.reward(user)) == PostbackResponse(503, "try again later")

    assert not Postback.objects.exists()
    assert "no key in AD_NETWORK_SECRET_KEYS decrypts a secret" in caplog.text
    assert network.secret not in caplog.text


def test_no_link_is_signed_with_an_unreadable_secret(settings: Any) -> None:
    set_up("visit-link")
    settings.AD_NETWORK_SECRET_KEYS = [secrets.token_urlsafe(40)]
    with pytest.raises(SealedUnderAnotherKey):
        request_visit_link(
            user=UserFactory.create(), campaign="x", amount=Decimal(1), lifetime=timedelta(hours=1),
            actor=member("operations"), reason="x", key="x",
        )  # fmt: skip
    assert not ApprovalRequest.objects.exists()


def test_the_key_is_replaced_without_losing_a_postback(settings: Any) -> None:
    network, other, user = set_up("tapjoy"), set_up("adgem"), UserFactory.create()
    set_secret(slug="tapjoy", secret="the next one", now=timezone.now())
    old = settings.AD_NETWORK_SECRET_KEYS[0]
    new = secrets.token_urlsafe(40)

    settings.AD_NETWORK_SECRET_KEYS = [new, old]
    assert network.send(network.reward(user)).status == 200
    out = StringIO()
    call_command("seal_network_secrets", stdout=out)
    assert out.getvalue() == "3 secrets are encrypted under the first key.\n"

    settings.AD_NETWORK_SECRET_KEYS = [new]
    assert network.send(network.reward(user)).status == other.send(other.reward(user)).status == 200
    settings.AD_NETWORK_SECRET_KEYS = [old]
    assert network.send(network.reward(user)).status == 503


def test_the_command_names_unreadable_secrets_and_keeps_them(settings: Any) -> None:
    set_up("tapjoy")
    kept = settings.AD_NETWORK_SECRET_KEYS
    settings.AD_NETWORK_SECRET_KEYS = [secrets.token_urlsafe(40)]
    readable = set_up("adgem")
    before = AdNetwork.objects.get(slug="tapjoy").current_secret

    out = StringIO()
    with pytest.raises(CommandError, match="decrypts the secrets of: tapjoy"):
        call_command("seal_network_secrets", stdout=out)

    assert out.getvalue().startswith("1 secrets")
    assert AdNetwork.objects.get(slug="tapjoy").current_secret == before
    readable.row.refresh_from_db()
    assert networks.live_secrets(readable.row) == [readable.secret]
    settings.AD_NETWORK_SECRET_KEYS = kept
    assert networks.live_secrets(AdNetwork.objects.get(slug="tapjoy")) != []


def test_an_unreadable_secret_can_be_replaced(settings: Any) -> None:
    network, user = set_up("tapjoy"), UserFactory.create()
    settings.AD_NETWORK_SECRET_KEYS = [secrets.token_urlsafe(40)]

    network.secret = secrets.token_hex(16)
    set_secret(slug="tapjoy", secret=network.secret, now=timezone.now())
    networks.retire_secret(slug="tapjoy")

    assert network.send(network.reward(user)).status == 200
