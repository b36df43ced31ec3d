"""The second factors of staff: sealed in the database, and again under a new key."""

import secrets
from io import StringIO

import pyotp
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from gateway.common.crypto import SealedUnderAnotherKey
from tests.staff import member
from users.models import Phone

pytestmark = pytest.mark.django_db


def stored() -> str:
    """Return all that the database has of phones."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(phone::text, ' ') FROM users_phone AS phone")
        return str(cursor.fetchone()[0])


def test_a_copy_of_the_database_has_no_seed() -> None:
    phone = Phone.objects.create(user=member("support"))
    assert len(bytes.fromhex(phone.key)) == 20
    assert not any(spelling in stored() for spelling in (phone.key, phone.key.upper(), phone.shown_key))


def test_a_number_is_used_once() -> None:
    phone = Phone.objects.create(user=member("support"))
    number = pyotp.TOTP(phone.shown_key).now()
    assert phone.verify_token(f" {number} ")
    assert not Phone.objects.get(pk=phone.pk).verify_token(number)


@pytest.mark.parametrize("number", ["", "abc", "-1", "１２"])
def test_an_invalid_phone_code_is_refused(number: str) -> None:
    phone = Phone.objects.create(user=member("support"))
    assert not phone.verify_token(number)
    assert Phone.objects.get(pk=phone.pk).throttling_failure_count == 1


def test_seeds_are_sealed_again_under_a_new_key(settings: Settings) -> None:
    phone = Phone.objects.create(user=member("support"))
    seed, old, new = phone.key, settings.AD_NETWORK_SECRET_KEYS[0], secrets.token_urlsafe(40)
    settings.AD_NETWORK_SECRET_KEYS = [new, old]
    call_command("seal_network_secrets", stdout=StringIO())
    settings.AD_NETWORK_SECRET_KEYS = [new]
    assert Phone.objects.get(pk=phone.pk).key == seed
    settings.AD_NETWORK_SECRET_KEYS = [old]
    with pytest.raises(SealedUnderAnotherKey):
        _ = Phone.objects.get(pk=phone.pk).key
    with pytest.raises(CommandError, match=str(phone.user)):
        call_command("seal_network_secrets", stdout=StringIO())
